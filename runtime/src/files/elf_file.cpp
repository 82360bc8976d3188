#include "files/elf_file.h"
#include "files/file.h"
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>

namespace scalide {

namespace {

struct MachineRow {
    int machine, file_class;
    const char *name; // as the names of Halide's targets begin
};

constexpr MachineRow machines[] = {
    {EM_X86_64, ELFCLASS64, "x86-64"}, {EM_386, ELFCLASS32, "x86-32"},     {EM_AARCH64, ELFCLASS64, "arm-64"},
    {EM_ARM, ELFCLASS32, "arm-32"},    {EM_RISCV, ELFCLASS64, "riscv-64"}, {EM_RISCV, ELFCLASS32, "riscv-32"},
};

const char *machine_name(const Elf64_Ehdr &header) {
    for (const MachineRow &row : machines) {
        if (row.machine == header.e_machine && row.file_class == header.e_ident[EI_CLASS]) return row.name;
    }
    return "an unknown machine";
}

bool read_header(const File &file, Elf64_Ehdr *header) {
    return file.is_open() && file.read_at(0, header, sizeof(*header)) && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0;
}

// The loader maps segments without checking that the file is long enough.
bool is_whole(const File &file, const Elf64_Ehdr &header) {
    uint64_t bytes = 0;
    if (!file.size(&bytes)) return false;
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (!file.read_at(header.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) return false;
        if (segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset) return false;
    }
    return true;
}

// On a pipe, the loader would wait for a writer.
bool is_pipe_or_device(const File &file) {
    uint64_t bytes = 0;
    return file.is_open() && !file.size(&bytes) && errno == not_a_file;
}

} // namespace

bool is_loadable(const char *path, Text &why) {
    const File file(path, O_RDONLY), own("/proc/self/exe", O_RDONLY);
    Elf64_Ehdr header, ours;
    if (is_pipe_or_device(file)) {
        why << "it is a pipe or a device";
        return false;
    }
    if (!read_header(file, &header) || !read_header(own, &ours)) return true;
    if (header.e_machine != ours.e_machine || header.e_ident[EI_CLASS] != ours.e_ident[EI_CLASS]) {
        why << "it is built for " << machine_name(header) << ", but this process runs on " << machine_name(ours);
        return false;
    }
    if (is_whole(file, header)) return true;
    why << "the file is truncated";
    return false;
}

} // namespace scalide
