#include "support/programs/rules.h"

namespace scalide {

const Rulebook &rules() {
    static const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    return rulebook;
}

} // namespace scalide
