#include "emit/kernel_facts.h"
#include "ir/text.h"
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

using Json = nlohmann::json;

Json to_row(const KernelOperand &operand) {
    return {static_cast<int>(operand.kind), operand.index, operand.symbol, to_string(operand.type), operand.strided};
}

KernelOperand to_operand(const Json &row) {
    return {static_cast<KernelOperand::Kind>(row.at(0).get<int>()), row.at(1).get<int>(), row.at(2).get<std::string>(),
            parse_type(row.at(3).get<std::string>(), {"kernel facts"}), row.at(4).get<bool>()};
}

} // namespace

std::string to_json(const KernelFacts &facts) {
    Json operands = Json::array();
    for (const KernelOperand &operand : facts.call_order) operands.push_back(to_row(operand));
    return Json{{"tiles", facts.tiles}, {"operands", operands}}.dump();
}

std::optional<KernelFacts> parse_facts(const std::string &json) {
    try {
        const Json parsed = Json::parse(json);
        KernelFacts facts{parsed.at("tiles").get<Tiles>(), {}};
        for (const Json &row : parsed.at("operands")) facts.call_order.push_back(to_operand(row));
        return facts;
    } catch (const Json::exception &) {
        return std::nullopt;
    } catch (const UserError &) { // an invalid type
        return std::nullopt;
    }
}

} // namespace scalide
