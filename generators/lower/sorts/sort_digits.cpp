#include "lower/halide/strict.h"
#include "lower/sorts/sort_lines.h"

// A radix sort (Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R). Positions are ordered by one digit of a key after the other,
// the lowest digit of the last key first. Each time the order is stable. For each digit, three steps run: count how often each value
// occurs, add up the counts to find where each value begins, and move every position to the next free slot of its value. The work is
// proportional to the length of a line. Only the keys are computed by vector code.
namespace scalide {
using Halide::Expr;

namespace {

constexpr int digit_bits = 8, values = 1 << digit_bits;

class DigitSort {
public:
    explicit DigitSort(SortLines &lines) : lines_(lines) {}

    void lower() {
        for (const SortLines::Key &key : lines_.keys()) {
            std::vector<Digit> digits;
            for (int shift = 0; shift < key.bits; shift += digit_bits) digits.push_back({words_.size(), shift});
            digits_.insert(digits_.begin(), digits.begin(), digits.end()); // the last key has the lowest digits
            Halide::Func words("words" + std::to_string(words_.size()));
            words(lines_.args({place_})) = key.word;
            words.bound(place_, 0, lines_.size); // otherwise an empty line would be rounded up to one element
            words_.push_back(words);
        }
        order_(lines_.args({slot_})) = Halide::undef<int32_t>();
        const int counts = int(digits_.size()) * (values + 1);
        Halide::RDom clear(0, counts, "clear");
        at(2 * lines_.size + clear) = 0;
        for (size_t d = 0; d < digits_.size(); d++) sort_by(int(d));
        order_.bound(slot_, 0, 2 * lines_.size + counts);
        lines_.stages.words = words_;
        lines_.stages.order = order_;
        const Expr last = digits_.size() % 2 == 0 ? Expr(0) : lines_.size;
        lines_.bind([&](const Index &index) { return order_(lines_.args({last + index[lines_.axis]}, index)); });
    }

private:
    struct Digit {
        size_t key;
        int shift;
    };

    Halide::FuncRef at(const Expr &slot) { return order_(lines_.args({slot})); }
    /// Returns the slot of a digit's count for a value. The slot after it holds where the next value begins.
    Expr count_slot(int d, const Expr &value) const { return 2 * lines_.size + d * (values + 1) + value; }
    Expr value_of(int d, const Expr &place) {
        const Expr word = words_[digits_[d].key](lines_.args({place}));
        return Halide::cast<int32_t>(Halide::cast<uint8_t>(word >> digits_[d].shift));
    }
    Expr within_line(const Expr &place) const { return Halide::clamp(place, 0, lines_.size - 1); }

    void sort_by(int d) {
        Halide::RDom element(0, lines_.size, "element"), value(1, values, "value"), move({{0, 2}, {0, lines_.size}}, "move");
        at(count_slot(d, value_of(d, element) + 1)) += 1;
        at(count_slot(d, value)) += at(count_slot(d, value - 1));
        const Expr place = d == 0 ? Expr(move.y) : within_line(at((d % 2 == 0 ? Expr(0) : lines_.size) + move.y));
        const Expr next = count_slot(d, value_of(d, place)), half = d % 2 == 0 ? lines_.size : Expr(0);
        at(select(move.x == 0, half + within_line(at(next)), next)) = select(move.x == 0, place, at(next) + 1);
    }

    SortLines &lines_;
    std::vector<Digit> digits_;
    Halide::Var slot_{"slot"}, place_ = lines_.vars[lines_.axis];
    std::vector<Halide::Func> words_;
    Halide::Func order_{"order"};
};

} // namespace

void sort_by_digits(SortLines &lines) { DigitSort(lines).lower(); }

} // namespace scalide
