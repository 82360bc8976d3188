#pragma once
#include "expr/error.h"
#include <functional>

/// Returns the text of an error without the place in this source.
inline std::string words_of(const scalide::UserError &error) {
    scalide::Message message = error.message();
    message.location = {};
    return scalide::UserError(message).what();
}

/// Returns the text of the error that the work throws, or "no error".
inline std::string words_of_error(const std::function<void()> &work) {
    try {
        work();
    } catch (const scalide::UserError &error) {
        return words_of(error);
    }
    return "no error";
}
