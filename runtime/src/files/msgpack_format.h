#pragma once
#include "scalide/msgpack.h"
#include <cstdint>

/// Definitions that the reader and the writer of msgpack files share.
namespace scalide {

/// The types of extensions that Flax uses.
enum : int8_t { ndarray_extension = 1, complex_extension = 2, scalar_extension = 3 };
constexpr char chunked_key[] = "__msgpack_chunked_array__", shape_key[] = "shape", chunks_key[] = "chunks";
constexpr uint64_t default_chunk_bytes = uint64_t(1) << 30;
/// The most levels of dicts. The reader and the writer call themselves for each level.
constexpr int most_levels = 64;

/// One value of the msgpack format. Maps and lists only have their size.
struct MsgpackToken {
    enum class Kind : uint8_t { map, list, text, bytes, extension, integer, unsigned_integer, real, boolean, none };
    Kind kind;
    int8_t extension;    ///< Kind::extension: its type
    uint32_t size;       ///< entries of a map or list; bytes of `data`
    const uint8_t *data; ///< of a text, of bytes, or of an extension
    int64_t integer;     ///< or the truth value
    double real;
};

/// Reads values from memory. It never reads past the end.
class MsgpackReader {
public:
    MsgpackReader(const uint8_t *begin, uint64_t size) : begin_(begin), at_(begin), end_(begin + size) {}

    /// Returns false if no complete value is there.
    bool next(MsgpackToken *token);
    uint64_t position() const { return static_cast<uint64_t>(at_ - begin_); }
    bool is_at_end() const { return at_ == end_; }

private:
    bool number(int bytes, uint64_t *value);
    bool payload(MsgpackToken *token, uint64_t size);
    bool sized(MsgpackToken *token, MsgpackToken::Kind kind, int size_bytes);
    bool extension(MsgpackToken *token, uint64_t size);
    bool integer(MsgpackToken *token, int bytes, bool is_signed);
    bool real(MsgpackToken *token, int bytes);
    bool long_form(MsgpackToken *token, uint8_t code);

    const uint8_t *begin_, *at_, *end_;
};

/// Writes NumPy's name of a dtype, such as "float8_e4m3fn".
struct NumpyName {
    char text[24];
    explicit NumpyName(int32_t dtype);
};
/// Returns the dtype with this NumPy name (`size` bytes), or -1.
int32_t numpy_dtype(const char *name, size_t size);

} // namespace scalide
