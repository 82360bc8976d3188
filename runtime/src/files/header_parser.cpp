#include "files/header_parser.h"
#include <cstring>

namespace scalide {

bool HeaderParser::fail(const char *requirement) {
    Text text = message_.begin() << "header byte " << int64_t(at_ - begin_) << ": expected " << requirement << ", got ";
    if (at_ == end_) {
        text << "the end of the header";
    } else if (*at_ > ' ' && *at_ < 127) {
        text << '\'' << *at_ << '\'';
    } else {
        text << "byte " << int32_t(static_cast<unsigned char>(*at_));
    }
    text << ". The file is damaged or not in the safetensors format.";
    return false;
}

void HeaderParser::skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

bool HeaderParser::accept(char character) {
    skip_space();
    if (at_ == end_ || *at_ != character) return false;
    ++at_;
    return true;
}

bool HeaderParser::expect(char character, const char *name) { return accept(character) || fail(name); }

bool HeaderParser::hex4(uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *digit = at_ < end_ && *at_ ? std::strchr(digits, *at_) : nullptr;
        if (!digit) return fail("a hexadecimal digit");
        *code = 16 * *code + static_cast<uint32_t>((digit - digits) % 16);
    }
    return true;
}

void HeaderParser::put_utf8(uint32_t code) {
    if (code < 0x80) {
        *pool_++ = static_cast<char>(code);
        return;
    }
    const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned leads[] = {0, 0xC0, 0xE0, 0xF0};
    *pool_++ = static_cast<char>(leads[tail] | (code >> (6 * tail)));
    for (int i = tail - 1; i >= 0; --i) *pool_++ = static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
}

bool HeaderParser::unicode_escape() {
    uint32_t code, low;
    if (!hex4(&code)) return false;
    if (code == 0) return fail("a name without zero bytes");
    if (code >= 0xDC00 && code < 0xE000) return fail("a high surrogate before a low one");
    if (code >= 0xD800 && code < 0xDC00) {
        if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') return fail("the low surrogate of a pair");
        at_ += 2;
        if (!hex4(&low)) return false;
        if (low < 0xDC00 || low >= 0xE000) return fail("the low surrogate of a pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    put_utf8(code);
    return true;
}

// at_ is the position after the backslash.
bool HeaderParser::escape() {
    constexpr char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (at_ < end_ && *at_ == 'u') {
        ++at_;
        return unicode_escape();
    }
    const char *letter = at_ < end_ && *at_ ? std::strchr(letters, *at_) : nullptr;
    if (!letter) return fail("a JSON escape");
    *pool_++ = values[letter - letters];
    ++at_;
    return true;
}

bool HeaderParser::string(const char **text) {
    if (!expect('"', "'\"'")) return false;
    *text = pool_;
    while (at_ < end_ && *at_ != '"') {
        if (static_cast<unsigned char>(*at_) < ' ') return fail("a string without control characters");
        if (*at_ != '\\') {
            *pool_++ = *at_++;
            continue;
        }
        ++at_;
        if (!escape()) return false;
    }
    if (at_ == end_) return fail("the end of a string");
    ++at_;
    *pool_++ = 0;
    return true;
}

bool HeaderParser::integer(int64_t *value) {
    skip_space();
    if (at_ == end_ || *at_ < '0' || *at_ > '9') return fail("a non-negative integer");
    for (*value = 0; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
        if (__builtin_mul_overflow(*value, int64_t(10), value) || __builtin_add_overflow(*value, int64_t(*at_ - '0'), value)) {
            return fail("an integer below 2^63");
        }
    }
    return true;
}

bool HeaderParser::integers(int64_t *values, int32_t capacity, int32_t *count) {
    if (!expect('[', "'['")) return false;
    *count = 0;
    if (accept(']')) return true;
    do {
        int64_t value;
        if (!integer(&value)) return false;
        if (*count < capacity) values[*count] = value;
        *count += *count < INT32_MAX;
    } while (accept(','));
    return expect(']', "',' or ']'");
}

bool HeaderParser::offsets(HeaderTensor *tensor) {
    int64_t values[2];
    int32_t count;
    if (!integers(values, 2, &count)) return false;
    if (count != 2) return fail("two numbers in data_offsets before this byte");
    tensor->begin = values[0];
    tensor->end = values[1];
    return true;
}

bool HeaderParser::field(HeaderTensor *tensor, uint32_t *seen) {
    constexpr const char *keys[] = {"dtype", "shape", "data_offsets"};
    char *const rewind = pool_;
    const char *key;
    if (!string(&key)) return false;
    uint32_t index = 0;
    while (index < 3 && std::strcmp(keys[index], key) != 0) ++index;
    if (index == 3) return fail("the key dtype, shape or data_offsets before this byte");
    if (*seen & (1u << index)) return fail("no key twice before this byte");
    *seen |= 1u << index;
    pool_ = rewind;
    if (!expect(':', "':'")) return false;
    if (index == 0) return string(&tensor->dtype);
    return index == 1 ? integers(tensor->extent, SCALIDE_MAX_RANK, &tensor->rank) : offsets(tensor);
}

bool HeaderParser::tensor(const char *name, Header *header) {
    HeaderTensor tensor = {};
    tensor.name = name;
    uint32_t seen = 0;
    if (!expect('{', "'{'")) return false;
    do {
        if (!field(&tensor, &seen)) return false;
    } while (accept(','));
    if (!expect('}', "',' or '}'")) return false;
    if (seen != 7) return fail("dtype, shape and data_offsets before this byte");
    if (header->tensors) header->tensors[header->tensor_count] = tensor;
    ++header->tensor_count;
    return true;
}

bool HeaderParser::metadata(Header *header) {
    if (!expect('{', "'{'")) return false;
    if (accept('}')) return true;
    do {
        scalide_metadata entry;
        if (!string(&entry.key) || !expect(':', "':'") || !string(&entry.value)) return false;
        if (header->metadata) header->metadata[header->metadata_count] = entry;
        ++header->metadata_count;
    } while (accept(','));
    return expect('}', "',' or '}'");
}

bool HeaderParser::entry(Header *header, bool *has_metadata) {
    const char *name;
    if (!string(&name) || !expect(':', "':'")) return false;
    if (std::strcmp(name, metadata_key) != 0) return tensor(name, header);
    if (*has_metadata) return fail("only one __metadata__ before this byte");
    *has_metadata = true;
    return metadata(header);
}

bool HeaderParser::parse(Header *header) {
    bool has_metadata = false;
    if (!expect('{', "'{'")) return false;
    if (!accept('}')) {
        do {
            if (!entry(header, &has_metadata)) return false;
        } while (accept(','));
        if (!expect('}', "',' or '}'")) return false;
    }
    skip_space();
    return at_ == end_ || fail("the end of the header");
}

} // namespace scalide
