#include "files/json_text.h"

namespace scalide {

Text &print_escaped(Text &text, const char *value) {
    constexpr char digits[] = "0123456789abcdef";
    for (; *value; ++value) {
        const auto code = static_cast<unsigned char>(*value);
        if (code < ' ') {
            text << "\\u00" << digits[code / 16] << digits[code % 16];
        } else {
            if (*value == '"' || *value == '\\') text << '\\';
            text << *value;
        }
    }
    return text;
}

} // namespace scalide
