#pragma once
#include "files/safetensors_format.h"
#include "scalide/safetensors.h"

namespace scalide {

/// One tensor as described in the header.
struct HeaderTensor {
    const char *name, *dtype;
    int32_t rank; ///< may exceed SCALIDE_MAX_RANK
    int64_t extent[SCALIDE_MAX_RANK];
    int64_t begin, end;
};

/// The content of a header. Without memory (null tables), the parser only counts the entries.
struct Header {
    HeaderTensor *tensors;
    scalide_metadata *metadata;
    uint64_t tensor_count, metadata_count;
};

/// Parses the JSON of a safetensors header in one pass, without recursion. It accepts only what the format allows.
class HeaderParser {
public:
    /// `pool` receives the unescaped strings. It must be as large as the text.
    HeaderParser(const char *text, uint64_t size, char *pool, const FileMessage &message)
        : begin_(text), at_(text), end_(text + size), pool_(pool), message_(message) {}

    /// If this returns false, the message contains the position of the error in bytes and its cause.
    bool parse(Header *header);

private:
    bool fail(const char *requirement);
    void skip_space();
    bool accept(char character);
    bool expect(char character, const char *name);
    bool string(const char **text);
    bool escape();
    bool unicode_escape();
    bool hex4(uint32_t *code);
    void put_utf8(uint32_t code);
    bool integer(int64_t *value);
    bool integers(int64_t *values, int32_t capacity, int32_t *count);
    bool offsets(HeaderTensor *tensor);
    bool field(HeaderTensor *tensor, uint32_t *seen);
    bool tensor(const char *name, Header *header);
    bool metadata(Header *header);
    bool entry(Header *header, bool *has_metadata);

    const char *begin_, *at_, *end_;
    char *pool_;
    FileMessage message_;
};

} // namespace scalide
