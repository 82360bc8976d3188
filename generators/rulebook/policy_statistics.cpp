#include "rulebook/policy_statistics.h"
#include "rulebook/yaml_value.h"
#include <algorithm>

namespace scalide {

namespace {

std::vector<StatisticKind> read_kinds(const YamlValue &value) {
    std::vector<StatisticKind> kinds;
    const std::vector<YamlValue> words = value.is_list() ? value.elements() : std::vector{value};
    if (words.empty()) value.fail("must not be an empty list");
    for (const YamlValue &word : words) {
        const std::string text = word.word({statistic_words.begin(), statistic_words.end()});
        const auto kind = static_cast<StatisticKind>(std::ranges::find(statistic_words, text) - statistic_words.begin());
        if (std::ranges::count(kinds, kind)) word.fail("must be unique", "'" + text + "' twice");
        kinds.push_back(kind);
    }
    return kinds;
}

} // namespace

StatisticsRow statistics_of_all(int64_t every) {
    StatisticsRow row{.every = every, .optional = true};
    for (size_t i = 0; i < statistic_words.size(); i++) row.collect.push_back(static_cast<StatisticKind>(i));
    return row;
}

StatisticsRow read_statistics_row(const YamlValue &row) {
    const YamlFields fields =
        row.fields({{"collect", Key::required}, {"argument"}, {"tensor"}, {"scope"}, {"op"}, {"every"}, {"optional"}});
    StatisticsRow made{.collect = read_kinds(*fields.find("collect")), .location = row.location()};
    if (const YamlValue *argument = fields.find("argument")) made.argument = argument->text();
    if (const YamlValue *tensor = fields.find("tensor")) made.tensor = tensor->text();
    if (const YamlValue *scope = fields.find("scope")) made.scope = scope->text();
    if (const YamlValue *ops = fields.find("op")) made.ops = ops->texts();
    if (const YamlValue *optional = fields.find("optional")) made.optional = optional->flag();
    const YamlValue *every = fields.find("every");
    if (every) made.every = every->integer();
    if (made.every < 1) every->fail("must be at least 1", std::to_string(made.every));
    return made;
}

} // namespace scalide
