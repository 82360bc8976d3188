#include "files/msgpack_format.h"
#include "base/text.h"
#include <cstring>
#include <utility>

namespace scalide {

bool MsgpackReader::number(int bytes, uint64_t *value) {
    if (end_ - at_ < bytes) return false;
    *value = 0;
    for (int i = 0; i < bytes; ++i) *value = *value << 8 | *at_++;
    return true;
}

bool MsgpackReader::payload(MsgpackToken *token, uint64_t size) {
    if (static_cast<uint64_t>(end_ - at_) < size) return false;
    token->size = static_cast<uint32_t>(size);
    token->data = at_;
    at_ += size;
    return true;
}

bool MsgpackReader::sized(MsgpackToken *token, MsgpackToken::Kind kind, int size_bytes) {
    uint64_t size;
    token->kind = kind;
    if (!number(size_bytes, &size)) return false;
    token->size = static_cast<uint32_t>(size);
    return kind == MsgpackToken::Kind::map || kind == MsgpackToken::Kind::list || payload(token, size);
}

bool MsgpackReader::extension(MsgpackToken *token, uint64_t size) {
    uint64_t type;
    token->kind = MsgpackToken::Kind::extension;
    if (!number(1, &type)) return false;
    token->extension = static_cast<int8_t>(type);
    return payload(token, size);
}

bool MsgpackReader::integer(MsgpackToken *token, int bytes, bool is_signed) {
    uint64_t value;
    if (!number(bytes, &value)) return false;
    const int unused = 64 - 8 * bytes;
    token->integer = is_signed ? static_cast<int64_t>(value << unused) >> unused : static_cast<int64_t>(value);
    const bool is_large = !is_signed && value > static_cast<uint64_t>(INT64_MAX);
    token->kind = is_large ? MsgpackToken::Kind::unsigned_integer : MsgpackToken::Kind::integer;
    return true;
}

bool MsgpackReader::real(MsgpackToken *token, int bytes) {
    uint64_t value;
    token->kind = MsgpackToken::Kind::real;
    if (!number(bytes, &value)) return false;
    if (bytes == 8) {
        std::memcpy(&token->real, &value, sizeof(token->real));
    } else {
        const auto bits = static_cast<uint32_t>(value);
        float narrow;
        std::memcpy(&narrow, &bits, sizeof(narrow));
        token->real = static_cast<double>(narrow);
    }
    return true;
}

/// Codes from 0xc0 to 0xdf.
bool MsgpackReader::long_form(MsgpackToken *token, uint8_t code) {
    using Kind = MsgpackToken::Kind;
    uint64_t size;
    switch (code) {
    case 0xc0: token->kind = Kind::none; return true;
    case 0xc2:
    case 0xc3:
        token->kind = Kind::boolean;
        token->integer = code - 0xc2;
        return true;
    case 0xc4:
    case 0xc5:
    case 0xc6: return sized(token, Kind::bytes, 1 << (code - 0xc4));
    case 0xc7:
    case 0xc8:
    case 0xc9: return number(1 << (code - 0xc7), &size) && extension(token, size);
    case 0xca: return real(token, 4);
    case 0xcb: return real(token, 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return integer(token, 1 << (code - 0xcc), false);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return integer(token, 1 << (code - 0xd0), true);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return extension(token, uint64_t(1) << (code - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb: return sized(token, Kind::text, 1 << (code - 0xd9));
    case 0xdc:
    case 0xdd: return sized(token, Kind::list, 2 << (code - 0xdc));
    case 0xde:
    case 0xdf: return sized(token, Kind::map, 2 << (code - 0xde));
    default: return false; // 0xc1 is never used
    }
}

bool MsgpackReader::next(MsgpackToken *token) {
    using Kind = MsgpackToken::Kind;
    *token = {};
    if (at_ == end_) return false;
    const uint8_t code = *at_++;
    if (code >= 0xc0 && code < 0xe0) return long_form(token, code);
    if (code >= 0xa0 && code < 0xc0) {
        token->kind = Kind::text;
        return payload(token, code & 0x1f);
    }
    token->size = code & 0x0f;
    token->kind = code < 0x80 || code >= 0xe0 ? Kind::integer : code < 0x90 ? Kind::map : Kind::list;
    token->integer = static_cast<int8_t>(code);
    return true;
}

NumpyName::NumpyName(int32_t dtype) {
    const char *name = scalide_dtype_name(dtype), *rest = name;
    const char *kind = "";
    for (const auto &[letter, word] : {std::pair("bf", "bfloat"), std::pair("f", "float"), std::pair("i", "int"), std::pair("u", "uint")}) {
        if (*kind || std::strncmp(name, letter, std::strlen(letter)) != 0) continue;
        kind = word;
        rest = name + std::strlen(letter);
    }
    Text(text, sizeof(text)) << kind << rest;
}

int32_t numpy_dtype(const char *name, size_t size) {
    for (int32_t dtype = 0; dtype < SCALIDE_DTYPE_COUNT; ++dtype) {
        const NumpyName known(dtype);
        if (std::strlen(known.text) == size && std::memcmp(known.text, name, size) == 0) return dtype;
    }
    return -1;
}

} // namespace scalide
