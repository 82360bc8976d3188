// Stores algorithms that earlier processes found. Each has one file, which is named by a hash of its key and starts with the key.
#include "cublaslt.h"
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace scalide {

namespace {

constexpr size_t most_key = 512;

struct Record {
    char key[most_key];
    cublaslt::Algorithm algorithm;
};

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
uint64_t hash_of(const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
    return hash;
}

bool path_of(const char *folder, const char *key, const char *ending, char *path, size_t capacity) {
    const int length = std::snprintf(path, capacity, "%s/%016llx.matmul%s", folder, static_cast<unsigned long long>(hash_of(key)), ending);
    return length > 0 && size_t(length) < capacity;
}

void describe(Text &key, const char *name, const MatmulMatrix &matrix) {
    if (matrix.dtype == no_dtype) return;
    key << ' ' << name << ' ' << scalide_dtype_name(matrix.dtype) << ' ' << (matrix.k_contiguous ? "k" : "-") << ' ' << matrix.leading
        << ' ' << matrix.batch_stride << ' ' << matrix.alignment << ' ' << to_string(matrix.scale);
}

} // namespace

void describe_key(const MatmulDesc &desc, const MatmulDevice &device, const char *device_name, MatmulSearch search, Text &key) {
    key << "cublaslt " << device.library << ' ' << device_name << " sm_" << device.capability << ' '
        << (search == MatmulSearch::timing ? "timing" : "heuristic") << ' ' << desc.batch << 'x' << desc.m << 'x' << desc.n << 'x'
        << desc.k;
    describe(key, "a", desc.a);
    describe(key, "b", desc.b);
    describe(key, "c", desc.c);
    describe(key, "d", desc.d);
    key << " epilogue " << static_cast<int32_t>(desc.epilogue) << ' ' << scalide_dtype_name(desc.bias_dtype) << (desc.amax ? " amax" : "")
        << (desc.fast_accumulation ? " fast" : "") << (desc.tf32 ? " tf32" : "") << (desc.has_factor ? " factor" : "")
        << (desc.has_addend_factor ? " addend_factor" : "") << " workspace " << desc.workspace_bytes;
}

bool read_algorithm(const char *folder, const char *key, cublaslt::Algorithm *algorithm) {
    char path[4096];
    Record record;
    if (!path_of(folder, key, "", path, sizeof(path))) return false;
    std::FILE *file = std::fopen(path, "rb");
    if (!file) return false;
    const bool is_whole = std::fread(&record, sizeof(record), 1, file) == 1;
    std::fclose(file);
    if (!is_whole || std::strncmp(record.key, key, most_key) != 0) return false;
    *algorithm = record.algorithm;
    return true;
}

void write_algorithm(const char *folder, const char *key, const cublaslt::Algorithm &algorithm) {
    char path[4096], part[4096], ending[32];
    std::snprintf(ending, sizeof(ending), ".%ld.part", static_cast<long>(getpid()));
    if (!path_of(folder, key, "", path, sizeof(path)) || !path_of(folder, key, ending, part, sizeof(part))) return;
    Record record = {};
    std::strncpy(record.key, key, most_key - 1);
    record.algorithm = algorithm;
    mkdir(folder, 0777);
    std::FILE *file = std::fopen(part, "wb");
    if (!file) return;
    const bool written = std::fwrite(&record, sizeof(record), 1, file) == 1;
    if (std::fclose(file) != 0 || !written || std::rename(part, path) != 0) std::remove(part);
}

} // namespace scalide
