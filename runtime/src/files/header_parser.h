#pragma once
#include "files/safetensors_format.h"
#include "scalide/safetensors.h"

namespace scalide {

/// One tensor of a header, as it stands there.
struct HeaderTensor {
    const char *name, *dtype;
    int32_t rank; ///< counts on beyond SCALIDE_MAX_RANK
    int64_t extent[SCALIDE_MAX_RANK];
    int64_t begin, end;
};

/// What a header holds. Without memory (null tables) the entries are only counted.
struct Header {
    HeaderTensor *tensors;
    scalide_metadata *metadata;
    uint64_t tensor_count, metadata_count;
};

/// Parses the JSON of a safetensors header: exactly the form that the format allows, in one pass, without recursion.
class HeaderParser {
public:
    /// `pool` takes the strings, unescaped: as many bytes as the text.
    HeaderParser(const char *text, uint64_t size, char *pool, const FileMessage &message)
        : begin_(text), at_(text), end_(text + size), pool_(pool), message_(message) {}

    /// False: the message says at which byte, and what.
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
