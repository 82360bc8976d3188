#include "rulebook/calibration.h"
#include "rulebook/yaml_value.h"
#include <cmath>

namespace scalide {

Calibration load_calibration(const std::filesystem::path &file) {
    const YamlValue document = parse_yaml_document(read_text_file(file.string()), file.string(), "calibration");
    const YamlFields fields = document.fields({{"program", Key::required}, {"amax", Key::required}});
    Calibration calibration{fields.find("program")->text(), {}, document.location()};
    for (const auto &[tensor, amax] : fields.find("amax")->entries()) {
        const double number = amax.number();
        if (!std::isfinite(static_cast<float>(number)) || number < 0) amax.fail("must be a finite f32 of at least 0", amax.text());
        calibration.amax.emplace(tensor, amax.number());
    }
    return calibration;
}

} // namespace scalide
