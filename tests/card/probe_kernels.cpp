#include "card/probe_kernels.h"
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>

namespace scalide {

namespace {

using Words = std::vector<std::string>;

std::string joined(const Words &parts) {
    std::string text;
    for (const std::string &part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
}

std::string number(int64_t value) { return std::to_string(value); }

/// A number of f32.
std::string real(float value) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "0f%08x", std::bit_cast<uint32_t>(value));
    return digits;
}

/// The text of an entry, instruction by instruction. Registers are numbered as they come.
class Writer {
public:
    void add(const std::string &instruction, const Words &operands) { text_ += "\t" + instruction + " " + joined(operands) + ";\n"; }
    void label(const std::string &name) { text_ += name + ":\n"; }

    std::string word() { return "%r" + number(words_++); }
    /// The result of an instruction on words, or on addresses.
    std::string make(const std::string &instruction, Words operands) { return write(instruction, word(), std::move(operands)); }
    std::string make_wide(const std::string &instruction, Words operands) {
        return write(instruction, "%rd" + number(wides_++), std::move(operands));
    }
    std::string condition(const std::string &instruction, Words operands) {
        return write(instruction, "%p" + number(conditions_++), std::move(operands));
    }

    std::string pointer(const std::string &name) { return make_wide("ld.param.u64", {"[" + name + "]"}); }
    std::string size(const std::string &name) { return make("ld.param.u32", {"[" + name + "]"}); }
    /// The address `bytes` (a PTX operand) after a pointer.
    std::string behind(const std::string &pointer, const std::string &bytes) { return make_wide("mad.wide.u32", {bytes, "1", pointer}); }

    /// `count` words of global memory, 1, 2 or 4.
    Words load(const std::string &address, int count, int64_t offset = 0) {
        Words words;
        for (int i = 0; i < count; i++) words.push_back(word());
        add("ld.global" + vector(count) + ".b32", {group(words), "[" + address + "+" + number(offset) + "]"});
        return words;
    }
    void store(const std::string &address, const Words &words, int64_t offset = 0) {
        add("st.global" + vector(int(words.size())) + ".b32", {"[" + address + "+" + number(offset) + "]", group(words)});
    }

    /// The value of all lanes of a warp.
    std::string fold_warp(const std::string &instruction, std::string value) {
        for (int distance = 16; distance > 0; distance /= 2)
            value = make(instruction, {value, make("shfl.sync.bfly.b32", {value, number(distance), "31", "-1"})});
        return value;
    }
    /// The value of all threads of a block, through shared memory from byte `place` on.
    std::string fold_block(const std::string &instruction, const std::string &mine, int threads, int place) {
        const std::string value = fold_warp(instruction, mine), warp = make("shr.u32", {thread(), "5"}),
                          at = make("mad.lo.u32", {warp, "4", shared()});
        add("st.shared.b32", {"[" + at + "+" + number(place) + "]", value}); // each lane the same
        add("bar.sync", {"0"});
        std::string all;
        for (int i = 0; i < threads / 32; i++) {
            const std::string one = make("ld.shared.b32", {"[block_memory+" + number(place + 4 * i) + "]"});
            all = all.empty() ? one : make(instruction, {all, one});
        }
        return all;
    }
    std::string shared() { return make("mov.u32", {"block_memory"}); }

    std::string thread() { return make("mov.u32", {"%tid.x"}); }
    std::string block() { return make("mov.u32", {"%ctaid.x"}); }
    /// The number of this thread of all.
    std::string place(int threads) { return make("mad.lo.u32", {block(), number(threads), thread()}); }

    ProbeKernel kernel(const std::string &name, int threads, int shared_bytes = 0) const {
        std::string text =
            ".version 7.1\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 block_memory[];\n.visible .entry " + name +
            "(.param .u64 in, .param .u64 out, .param .u64 side, .param .u32 columns, .param .u32 rows)\n.maxntid " + number(threads) +
            "\n{\n\t.reg .b16 %h<2>;\n\t.reg .b32 %r<" + number(words_ + 1) + ">;\n\t.reg .b64 %rd<" + number(wides_ + 1) +
            ">;\n\t.reg .pred %p<" + number(conditions_ + 1) + ">;\n" + text_ + "\tret;\n}\n";
        return {name, text, threads, shared_bytes};
    }

private:
    static std::string vector(int count) { return count == 1 ? "" : ".v" + number(count); }
    static std::string group(const Words &words) {
        return words.size() == 1 ? words[0] : std::string("{").append(joined(words)).append("}");
    }

    std::string write(const std::string &instruction, const std::string &result, Words operands) {
        operands.insert(operands.begin(), result);
        add(instruction, operands);
        return result;
    }

    std::string text_;
    int words_ = 0, wides_ = 0, conditions_ = 0;
};

/// The two f32 of a word of bf16.
Words widened(Writer &w, const std::string &word) { return {w.make("shl.b32", {word, "16"}), w.make("and.b32", {word, "0xffff0000"})}; }

/// The four f32 of a word of e5m2: the upper byte of f16.
Words decoded(Writer &w, const std::string &word) {
    Words values;
    for (const char *halves : {"0x1404", "0x3424"}) {
        w.add("mov.b32", {"{%h0, %h1}", w.make("prmt.b32", {word, "0", halves})});
        for (const char *half : {"%h0", "%h1"}) values.push_back(w.make("cvt.f32.f16", {half}));
    }
    return values;
}

/// Rounded to f16, then cut.
std::string encoded(Writer &w, const Words &values, size_t first) {
    const std::string low = w.make("cvt.rn.f16x2.f32", {values[first + 1], values[first]}),
                      high = w.make("cvt.rn.f16x2.f32", {values[first + 3], values[first + 2]});
    return w.make("prmt.b32", {low, high, "0x7531"});
}

/// u = x (c1 + c3 x^2), times a factor.
std::string argument_of_gelu(Writer &w, const std::string &x, double factor) {
    constexpr double c1 = 0.7978845608028654, c3 = 0.044715 * c1; // sqrt(2 / pi)
    const std::string square = w.make("mul.rn.f32", {x, x}),
                      sum = w.make("fma.rn.f32", {square, real(float(factor * c3)), real(float(factor * c1))});
    return w.make("mul.rn.f32", {x, sum});
}

template<typename Gelu>
ProbeKernel gelu(const std::string &name, Gelu one) {
    constexpr int threads = 256;
    Writer w;
    const std::string bytes = w.make("shl.b32", {w.place(threads), "4"});
    Words results;
    for (const std::string &word : w.load(w.behind(w.pointer("in"), bytes), 4)) {
        Words values;
        for (const std::string &x : decoded(w, word)) values.push_back(one(w, x));
        results.push_back(encoded(w, values, 0));
    }
    w.store(w.behind(w.pointer("out"), bytes), results);
    return w.kernel(name, threads);
}

template<typename Keep>
ProbeKernel amax(const std::string &name, int shared_bytes, Keep keep) {
    constexpr int threads = 256;
    Writer w;
    const std::string place = w.place(threads), from = w.behind(w.pointer("in"), w.make("shl.b32", {place, "5"}));
    Words words = w.load(from, 4), values, results;
    for (const std::string &word : w.load(from, 4, 16)) words.push_back(word);
    std::string largest;
    for (const std::string &word : words) {
        for (const std::string &value : widened(w, word)) {
            const std::string magnitude = w.make("and.b32", {value, "0x7fffffff"});
            largest = largest.empty() ? magnitude : w.make("max.u32", {largest, magnitude});
            values.push_back(value);
        }
    }
    for (size_t i = 0; i < values.size(); i += 4) results.push_back(encoded(w, values, i));
    w.store(w.behind(w.pointer("out"), w.make("shl.b32", {place, "4"})), results);
    keep(w, largest, place);
    return w.kernel(name, threads, shared_bytes);
}

/// A word for this block, of which each thread has the same.
void store_of_block(Writer &w, const std::string &word) {
    w.store(w.behind(w.pointer("side"), w.make("shl.b32", {w.block(), "2"})), {word});
}

/// `elements` of each of `threads` threads, of a row that begins at byte `row`.
ProbeKernel softmax(Writer &w, const std::string &name, int columns, int threads, const std::string &row, const std::string &thread,
                    int threads_of_block) {
    const int words = columns / threads / 2, together = std::min(4, words);
    const std::string bytes = w.make("mad.lo.u32", {thread, number(4 * together), row}), from = w.behind(w.pointer("in"), bytes),
                      to = w.behind(w.pointer("out"), bytes);
    const bool in_block = threads > 32;
    const auto fold = [&](const std::string &instruction, const std::string &mine, int place) {
        return in_block ? w.fold_block(instruction, mine, threads, place) : w.fold_warp(instruction, mine);
    };
    Words values;
    for (int i = 0; i < words; i += together)
        for (const std::string &word : w.load(from, together, int64_t(4) * i * threads))
            for (const std::string &value : widened(w, word)) values.push_back(value);
    std::string largest = values[0], sum;
    for (const std::string &value : values) largest = w.make("max.f32", {largest, value});
    constexpr float log2_e = 1.44269504f;
    const std::string shift = w.make("mul.rn.f32", {fold("max.f32", largest, 0), real(-log2_e)});
    for (std::string &value : values) {
        value = w.make("ex2.approx.ftz.f32", {w.make("fma.rn.f32", {value, real(log2_e), shift})});
        sum = sum.empty() ? value : w.make("add.rn.f32", {sum, value});
    }
    const std::string factor = w.make("rcp.approx.ftz.f32", {fold("add.rn.f32", sum, 64)});
    for (int i = 0; i < words; i += together) {
        Words results;
        for (int j = 2 * i; j < 2 * (i + together); j += 2) { // to the nearest of bf16
            Words rounded;
            for (const std::string &value : {values[size_t(j)], values[size_t(j) + 1]})
                rounded.push_back(w.make("add.u32", {w.make("mul.rn.f32", {value, factor}), "0x8000"}));
            results.push_back(w.make("prmt.b32", {rounded[0], rounded[1], "0x7632"}));
        }
        w.store(to, results, int64_t(4) * i * threads);
    }
    return w.kernel(name + "_" + number(columns), threads_of_block, in_block ? 128 : 0);
}

} // namespace

ProbeKernel gelu_by_exponential() {
    return gelu("gelu_by_exponential", [](Writer &w, const std::string &x) {
        constexpr double log2_e = 1.4426950408889634;
        const std::string power = w.make("ex2.approx.ftz.f32", {argument_of_gelu(w, x, -2 * log2_e)});
        return w.make("mul.rn.f32", {x, w.make("rcp.approx.ftz.f32", {w.make("add.rn.f32", {power, real(1)})})});
    });
}

ProbeKernel gelu_by_tangent() {
    return gelu("gelu_by_tangent", [](Writer &w, const std::string &x) {
        const std::string half = w.make("mul.rn.f32", {x, real(0.5)});
        return w.make("fma.rn.f32", {half, w.make("tanh.approx.f32", {argument_of_gelu(w, x, 1)}), half});
    });
}

ProbeKernel amax_of_threads() {
    return amax("amax_of_threads", 0, [](Writer &w, const std::string &largest, const std::string &place) {
        w.store(w.behind(w.pointer("side"), w.make("shl.b32", {place, "2"})), {largest});
    });
}

ProbeKernel amax_of_blocks() {
    return amax("amax_of_blocks", 64, [](Writer &w, const std::string &largest, const std::string &) {
        store_of_block(w, w.fold_block("max.u32", largest, 256, 0));
    });
}

ProbeKernel largest_words() {
    constexpr int threads = 256, words = 16;
    Writer w;
    const std::string from =
        w.behind(w.pointer("in"), w.make("mad.lo.u32", {w.block(), number(4 * words * threads), w.make("shl.b32", {w.thread(), "4"})}));
    std::string largest;
    for (int i = 0; i < words; i += 4)
        for (const std::string &word : w.load(from, 4, int64_t(4) * i * threads))
            largest = largest.empty() ? word : w.make("max.u32", {largest, word});
    store_of_block(w, w.fold_block("max.u32", largest, threads, 0));
    return w.kernel("largest_words", threads, 64);
}

// A thread turns squares of 4 x 4 bytes: four of its words along the argument become four along the result, which go to a tile of words
// with lines of 33, so that no warp meets a bank of shared memory twice: 8 squares along a line and 4 across are a warp's.
ProbeKernel transpose(int bytes) {
    constexpr int threads = 256, side = 128, squares = side / 4, line = squares + 1;
    Writer w;
    const std::string thread = w.thread(), in = w.pointer("in"), columns = w.size("columns"), rows = w.size("rows"),
                      first_column = w.make("mul.lo.u32", {w.block(), number(side)}),
                      first_row = w.make("mul.lo.u32", {w.make("mov.u32", {"%ctaid.y"}), number(side)}),
                      across = w.make("shr.u32", {thread, "3"}), along = w.make("and.b32", {thread, "7"});
    const std::string row = w.make("mad.lo.u32", {across, "4", first_row}),
                      column = w.make("mad.lo.u32", {along, "4", first_column}), // of the first square
        to_tile = w.make("mad.lo.u32", {w.make("mad.lo.u32", {along, number(4 * line), across}), "4", w.shared()});
    std::string from = w.behind(in, w.make("mad.lo.u32", {row, columns, column}));
    std::vector<Words> lines;
    for (int i = 0; i < 4; i++) {
        Words words;
        for (int square = 0; square < squares / 8; square++) words.push_back(w.load(from, 1, int64_t(32) * square)[0]);
        lines.push_back(words);
        from = w.behind(from, columns);
    }
    for (int square = 0; square < squares / 8; square++) {
        Words pairs; // bytes 0 and 1, 2 and 3 of two lines
        for (const char *picks : {"0x5140", "0x7362"})
            for (const size_t i : {0, 2})
                pairs.push_back(w.make("prmt.b32", {lines[i][size_t(square)], lines[i + 1][size_t(square)], picks}));
        for (int i = 0; i < 4; i++) {
            const size_t pair = i < 2 ? 0 : 2;
            const std::string turned = w.make("prmt.b32", {pairs[pair], pairs[pair + 1], i % 2 == 0 ? "0x5410" : "0x7632"});
            w.add("st.shared.b32", {"[" + to_tile + "+" + number(4 * line * (32 * square + i)) + "]", turned});
        }
    }
    w.add("bar.sync", {"0"});
    const int words = bytes / 4, threads_of_line = squares / words, lines_at_once = threads / threads_of_line;
    const std::string line_of = w.make("shr.u32", {thread, number(std::countr_zero(unsigned(threads_of_line)))}),
                      word_of = w.make("mul.lo.u32", {w.make("and.b32", {thread, number(threads_of_line - 1)}), number(words)}),
                      from_tile = w.make("mad.lo.u32", {w.make("mad.lo.u32", {line_of, number(line), word_of}), "4", w.shared()}),
                      place = w.make("mad.lo.u32",
                                     {w.make("add.u32", {first_column, line_of}), rows, w.make("mad.lo.u32", {word_of, "4", first_row})}),
                      step = w.make("mul.lo.u32", {rows, number(lines_at_once)});
    std::string to = w.behind(w.pointer("out"), place);
    for (int i = 0; i < side; i += lines_at_once) {
        Words taken;
        for (int j = 0; j < words; j++)
            taken.push_back(w.make("ld.shared.b32", {"[" + from_tile + "+" + number(4 * (line * i + j)) + "]"}));
        w.store(to, taken);
        to = w.behind(to, step);
    }
    return w.kernel("transpose_" + number(bytes), threads, 4 * side * line);
}

ProbeKernel column_sums() {
    constexpr int threads = 128, ahead = 8;
    Writer w;
    const std::string columns = w.size("columns"), rows = w.size("rows"), column = w.place(threads),
                      block = w.make("mov.u32", {"%ctaid.y"}), line = w.make("shl.b32", {columns, "2"}),
                      first = w.make("mad.lo.u32", {w.make("mul.lo.u32", {block, rows}), columns, column});
    const std::string from = w.make_wide("mad.wide.u32", {first, "4", w.pointer("in")}), at = w.make_wide("mov.u64", {from}),
                      sum = w.make("mov.b32", {real(0)}), left = w.make("mov.b32", {rows});
    w.label("next");
    Words words;
    for (int i = 0; i < ahead; i++) {
        words.push_back(w.load(at, 1)[0]);
        w.add("mad.wide.u32", {at, line, "1", at});
    }
    for (const std::string &word : words) w.add("add.rn.f32", {sum, sum, word});
    w.add("sub.u32", {left, left, number(ahead)});
    w.add("@" + w.condition("setp.ne.u32", {left, "0"}) + " bra", {"next"});
    w.store(w.make_wide("mad.wide.u32", {w.make("mad.lo.u32", {block, columns, column}), "4", w.pointer("out")}), {sum});
    return w.kernel("column_sums", threads);
}

ProbeKernel softmax_in_block(int columns) {
    Writer w;
    const int threads = std::min(256, columns / 2);
    return softmax(w, "softmax_in_block", columns, threads, w.make("mul.lo.u32", {w.block(), number(2 * columns)}), w.thread(), threads);
}

ProbeKernel softmax_in_warp(int columns) {
    constexpr int threads = 128;
    Writer w;
    const std::string thread = w.thread(), lane = w.make("and.b32", {thread, "31"}),
                      row = w.make("mad.lo.u32", {w.block(), number(threads / 32), w.make("shr.u32", {thread, "5"})});
    return softmax(w, "softmax_in_warp", columns, 32, w.make("mul.lo.u32", {row, number(2 * columns)}), lane, threads);
}

ProbeKernel doubles(int vectors, int threads) {
    Writer w;
    const std::string bytes =
        w.make("mad.lo.u32", {w.block(), number(int64_t(16) * threads * vectors), w.make("shl.b32", {w.thread(), "4"})});
    const std::string from = w.behind(w.pointer("in"), bytes), to = w.behind(w.pointer("out"), bytes);
    std::vector<Words> taken;
    for (int i = 0; i < vectors; i++) taken.push_back(w.load(from, 4, int64_t(16) * threads * i));
    for (int i = 0; i < vectors; i++) {
        Words results;
        for (const std::string &word : taken[size_t(i)]) {
            Words doubled;
            for (const std::string &value : widened(w, word)) doubled.push_back(w.make("add.rn.f32", {value, value}));
            results.push_back(w.make("prmt.b32", {doubled[0], doubled[1], "0x7632"}));
        }
        w.store(to, results, int64_t(16) * threads * i);
    }
    return w.kernel("doubles_" + number(vectors) + "_" + number(threads), threads);
}

std::vector<ProbeKernel> probe_kernels() {
    std::vector<ProbeKernel> all = {gelu_by_exponential(), gelu_by_tangent(), amax_of_threads(), amax_of_blocks(),
                                    largest_words(),       transpose(4),      transpose(16),     column_sums()};
    for (int columns = 128; columns <= 4096; columns *= 2)
        all.push_back(softmax_in_block(columns)), all.push_back(softmax_in_warp(columns));
    for (const int threads : {64, 128, 256, 512, 1024})
        for (const int vectors : {1, 2, 4}) all.push_back(doubles(vectors, threads));
    return all;
}

} // namespace scalide
