#include "lower/halide/amx_tiles.h"
#include "expr/error.h"
#include <algorithm>

namespace scalide {

namespace {

using namespace Halide::Internal;
using Halide::Expr, Halide::Int, Halide::Type;

constexpr const char *marker = "scalide_amx_product";
constexpr int tile_side = 16;

// Arguments of a marker.
enum Argument { sum_first, sum_row, lhs_first, lhs_row, lhs_half, lhs_element, rhs_first, rhs_row, rhs_half, rhs_element };

Expr wide(const Expr &e) { return Halide::cast<int64_t>(e); }

/// An operand or the sums in memory. All distances are in bytes.
struct Matrix {
    Expr base; ///< the pointer of the stage or argument
    Expr first, row, half;

    Matrix(const Load *at, const Load *next_row, const Load *next_half = nullptr)
        : base(Variable::make(Halide::Handle(), at->name)), first(wide(at->index) * at->type.bytes()), row(distance(at, next_row)) {
        if (next_half) half = distance(at, next_half);
    }
    static Expr distance(const Load *from, const Load *to) {
        return simplify(wide(simplify(to->index - from->index)) * from->type.bytes());
    }
};

/// Makes the statements of one product. Names of its tiles and operands are unique, as LLVM gives each tile of a function its own register.
class Product {
public:
    Product(const Matrix &sums, const Matrix &lhs, const Matrix &rhs, const Type &sum, const Type &lhs_element, const Type &rhs_element)
        : sums_(sums), lhs_(lhs), rhs_(rhs), tile_(sum.with_lanes(tile_side * tile_side)), lhs_element_(lhs_element),
          rhs_element_(rhs_element) {}

    /// `loop`: the loop over the steps; null if there is one step.
    Stmt make(const For *loop) const {
        std::vector<Stmt> zeros, terms, stores;
        for (int i = 0; i < 4; i++) {
            zeros.push_back(set(i, intrinsic(tile_, "tile_zero", {tile_side, amx_step_bytes})));
            terms.push_back(set(i, multiplied(i)));
            stores.push_back(stored(i));
        }
        const Stmt step = with_operands(Block::make(terms));
        zeros.push_back(
            loop ? For::make(loop->name, loop->min, loop->extent, ForType::Serial, Halide::Partition::Never, Halide::DeviceAPI::None, step)
                 : step);
        Stmt all = Block::make(Block::make(zeros), Block::make(stores));
        // Halide 21 lets stages of one type share memory, and LLVM keeps only memory of tiles alone in registers. So the type is a vector.
        for (int i = 0; i < 4; i++) all = Allocate::make(tile_name(i), tile_, Halide::MemoryType::AMXTile, {1}, const_true(), all);
        return all;
    }

private:
    static Expr intrinsic(const Type &type, const char *name, const std::vector<int> &numbers, const std::vector<Expr> &more = {}) {
        std::vector<Expr> args;
        for (const int number : numbers) args.push_back(make_const(Int(16), number));
        args.insert(args.end(), more.begin(), more.end());
        return Call::make(type, name, args, Call::Intrinsic);
    }
    std::string tile_name(int i) const { return id_ + ".sum" + std::to_string(i); }
    Expr whole_tile() const { return Ramp::make(0, 1, tile_.lanes()); }
    Stmt set(int i, const Expr &value) const {
        return Store::make(tile_name(i), value, whole_tile(), Halide::Parameter(), const_true(tile_.lanes()), ModulusRemainder());
    }
    Expr tile(int i) const {
        return Load::make(tile_, tile_name(i), whole_tile(), Halide::Buffer<>(), Halide::Parameter(), const_true(tile_.lanes()),
                          ModulusRemainder());
    }

    // The left operand has two tiles of rows, the right one two tiles of columns.
    std::string operand_name(bool is_right, int half) const { return id_ + (is_right ? ".rhs" : ".lhs") + std::to_string(half); }
    Type operand_type(bool is_right) const {
        const Type &element = is_right ? rhs_element_ : lhs_element_;
        return element.with_lanes(tile_side * amx_step_bytes / element.bytes());
    }
    Expr operand(bool is_right, int half) const { return Variable::make(operand_type(is_right), operand_name(is_right, half)); }
    Expr loaded(bool is_right, int half) const {
        const Matrix &from = is_right ? rhs_ : lhs_;
        const Expr offset = simplify(from.first + half * from.half);
        return intrinsic(operand_type(is_right), "tile_load", {tile_side, amx_step_bytes}, {from.base, offset, from.row});
    }
    Stmt with_operands(Stmt body) const {
        for (const bool is_right : {false, true})
            for (const int half : {0, 1}) body = LetStmt::make(operand_name(is_right, half), loaded(is_right, half), body);
        return body;
    }

    Expr multiplied(int i) const {
        return intrinsic(tile_, "tile_matmul", {tile_side, amx_step_bytes, amx_step_bytes},
                         {tile(i), operand(false, i / 2), operand(true, i % 2)});
    }
    Stmt stored(int i) const {
        const Expr offset = simplify(sums_.first + i / 2 * tile_side * sums_.row + i % 2 * amx_step_bytes);
        return Evaluate::make(intrinsic(Int(32), "tile_store", {tile_side, amx_step_bytes}, {sums_.base, offset, sums_.row, tile(i)}));
    }

    const std::string id_ = unique_name("amx");
    Matrix sums_, lhs_, rhs_;
    Type tile_, lhs_element_, rhs_element_;
};

class AmxTiles : public IRMutator {
    using IRMutator::visit;

    Stmt visit(const LetStmt *op) override {
        const ScopedBinding<Expr> bind(lets_, op->name, op->value);
        return IRMutator::visit(op);
    }

    /// Returns where an argument of the marker is in memory. Equal arguments may have become variables.
    const Load *place(Expr e) const {
        while (const auto *variable = e.as<Variable>()) e = *lets_.find(variable->name);
        const auto *load = e.as<Load>();
        internal_check(load, "an argument of a product of tiles is not in memory");
        return load;
    }

    /// Returns the marker that the statement stores, possibly inside Lets; null if it is something else.
    static const Call *marker_of(const Stmt &statement) {
        if (const auto *let = statement.as<LetStmt>()) return marker_of(let->body);
        const auto *store = statement.as<Store>();
        const auto *call = store ? store->value.as<Call>() : nullptr;
        return call && call->name == marker ? call : nullptr;
    }

    /// Returns the product that a marker stands for.
    Stmt product(const Call *call, const For *loop) const {
        const std::vector<Expr> &at = call->args;
        const Matrix sums(place(at[sum_first]), place(at[sum_row]));
        const Matrix lhs(place(at[lhs_first]), place(at[lhs_row]), place(at[lhs_half]));
        const Matrix rhs(place(at[rhs_first]), place(at[rhs_row]), place(at[rhs_half]));
        const std::vector<Expr> of_all_steps = {sums.first, sums.row, lhs.row, lhs.half, rhs.row, rhs.half};
        const auto depends = [&](const Expr &e) { return loop && expr_uses_var(e, loop->name); };
        internal_check(std::ranges::none_of(of_all_steps, depends), "the distances in a product of tiles change from step to step");
        return Product(sums, lhs, rhs, call->type, at[lhs_element].type(), at[rhs_element].type()).make(loop);
    }

    Stmt visit(const For *op) override {
        if (!marker_of(op->body)) return IRMutator::visit(op);
        Stmt body = op->body;
        while (const auto *let = body.as<LetStmt>()) body = substitute(let->name, let->value, let->body);
        return product(marker_of(body), op);
    }

    Stmt visit(const Store *op) override {
        const Call *call = marker_of(op);
        return call ? product(call, nullptr) : IRMutator::visit(op);
    }

    Scope<Expr> lets_;
};

} // namespace

std::vector<Expr> amx_place(std::vector<Expr> at) {
    const Expr row = at[1];
    at[1] = row % amx_side;
    at.insert(at.begin() + 2, row / amx_side);
    return at;
}

void define_amx_product(Halide::Func tiles, const std::vector<Expr> &place, const Type &sum, const Expr &steps,
                        const std::function<AmxOperands(const Expr &step)> &operands) {
    const auto at = [&](int column, int row) {
        std::vector<Expr> index = {column, row};
        index.insert(index.end(), place.begin(), place.end());
        return index;
    };
    std::vector<Halide::Var> vars = {Halide::Var("tile_column"), Halide::Var("tile_row")};
    for (const Expr &e : place) vars.emplace_back(e.as<Variable>()->name);
    const Halide::RDom step(0, steps, "step");
    const auto [lhs, rhs] = operands(step.x);
    tiles(vars) = Halide::undef(sum);
    tiles(at(0, 0)) = Call::make(sum, marker,
                                 {tiles(at(0, 0)), tiles(at(0, 1)), lhs.first, lhs.row, lhs.half, make_zero(lhs.element), rhs.first,
                                  rhs.row, rhs.half, make_zero(rhs.element), lhs.last, rhs.last},
                                 Call::Extern);
}

IRMutator *amx_tiles_pass() { return new AmxTiles; }

} // namespace scalide
