#include "card/card.h"
#include "ir/text.h"
#include "transforms/analysis/passes.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace scalide {

namespace {

const Rulebook &rulebook() {
    static const Rulebook rules = Rulebook::load({build_folders().rules});
    return rules;
}

/// SCALIDE_CARD=opencl runs these tests without a CUDA GPU.
const std::string &card_target() {
    static const std::string target = std::getenv("SCALIDE_CARD") != nullptr ? std::getenv("SCALIDE_CARD") : "cuda";
    return target;
}

/// Which NaN it is depends on the instruction: the NaN of an invalid operation is negative on x86 and positive on GPUs, and a GPU's
/// conversions to 16 bits make one of their own.
bool both_nan(Dtype dtype, uint32_t a, uint32_t b) {
    if (dtype == Dtype::f32) return std::isnan(std::bit_cast<float>(a)) && std::isnan(std::bit_cast<float>(b));
    return is_float(dtype) && std::isnan(decode(format_of(dtype), a)) && std::isnan(decode(format_of(dtype), b));
}

uint32_t code_at(const HostArray &array, size_t index) {
    const auto width = static_cast<size_t>(size_of(array.dtype));
    uint32_t code = 0;
    std::memcpy(&code, array.data.data() + index * width, width);
    return code;
}

std::string difference(const HostArray &card, const HostArray &cpu) {
    if (card.data == cpu.data) return "";
    for (size_t i = 0; i < cpu.data.size() / static_cast<size_t>(size_of(cpu.dtype)); i++) {
        const uint32_t on_card = code_at(card, i), on_cpu = code_at(cpu, i);
        if (on_card == on_cpu || both_nan(cpu.dtype, on_card, on_cpu)) continue;
        return cpu.name + "[" + std::to_string(i) + "]: code " + std::to_string(on_card) + " on the card, " + std::to_string(on_cpu) +
               " on the CPU";
    }
    return "";
}

} // namespace

const std::string &why_no_card() {
    static const std::string why = [] {
        const OpenedContext context = open_context(card_target() == "cuda" ? SCALIDE_CUDA : SCALIDE_OPENCL);
        return context.handle ? "" : "no card: " + context.message;
    }();
    return why;
}

std::unique_ptr<CompiledProgram> compile_for_card(const std::string &text) {
    return std::make_unique<CompiledProgram>(parse_program(text, "card.scl"), rulebook(), Policy{}, card_target());
}

OnBoth::OnBoth(const std::string &text) : card_(compile_for_card(text)), cpu_(parse_program(text, "card.scl"), rulebook(), {}) {}

std::string OnBoth::first_difference(const std::vector<HostArray> &inputs) const {
    const auto find = [&](const std::string &name) { return *std::ranges::find(inputs, name, &HostArray::name); };
    const std::vector<HostArray> card = card_->loaded().run(find), cpu = cpu_.loaded().run(find);
    for (size_t i = 0; i < cpu.size(); i++)
        if (std::string words = difference(card[i], cpu[i]); !words.empty()) return words;
    return "";
}

} // namespace scalide
