#pragma once
#include "expr/error.h"

/// Returns the text of an error without the place in this source.
inline std::string words_of(const scalide::UserError &error) {
    scalide::Message message = error.message();
    message.location = {};
    return scalide::UserError(message).what();
}
