// The text of PTX: entries, labels, statements. Registers are told apart by name alone, for instructions say their types.
#include "support/ptx/machine.h"
#include <algorithm>
#include <dlfcn.h>
#include <memory>
#include <regex>
#include <stdexcept>

namespace scalide::ptx {

namespace {

std::string trimmed(const std::string &text) {
    const size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string without_comments(const std::string &text) { return std::regex_replace(text, std::regex("//[^\n]*"), ""); }

/// Parts between `separator` that stand in no bracket.
std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (const char c : text) {
        depth += c == '{' || c == '[' || c == '(';
        depth -= c == '}' || c == ']' || c == ')';
        if (c == separator && depth == 0)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    for (std::string &part : parts) part = trimmed(part);
    return parts;
}

class EntryParser {
public:
    explicit EntryParser(std::string shared) : shared_(std::move(shared)) {}

    Entry parse(const std::string &parameters, const std::string &header, const std::string &body) {
        read_parameters(parameters);
        std::smatch threads;
        if (std::regex_search(header, threads, std::regex(R"(\.maxntid\s+(\d+))"))) entry_.most_threads = std::stoul(threads[1]);
        read_statements(body);
        entry_.code.push_back({[](Thread &thread) { thread.state = State::ended; }});
        for (const auto &[name, place] : labels_)
            if (*place == unknown) throw std::runtime_error("ptx: no label " + name);
        entry_.registers = numbers_.size();
        return std::move(entry_);
    }

private:
    static constexpr size_t unknown = SIZE_MAX;

    void read_parameters(const std::string &text) {
        size_t end = 0;
        for (const std::string &line : split(text, ',')) {
            std::smatch found;
            if (!std::regex_match(line, found, std::regex(R"(\.param\s+\.[a-z](\d+)\s+(?:\.ptr\s+(?:\.\w+\s+)?\.align\s+\d+\s+)?(\S+))")))
                throw std::runtime_error("ptx: not understood: " + line);
            const size_t bytes = std::stoul(found[1]) / 8, offset = (end + bytes - 1) / bytes * bytes;
            entry_.offsets[found[2]] = offset;
            entry_.offset_of.push_back(offset), entry_.bytes_of.push_back(bytes);
            end = offset + bytes;
        }
    }

    int number(const std::string &name) { return numbers_.try_emplace(name, static_cast<int>(numbers_.size())).first->second; }

    std::shared_ptr<size_t> label(const std::string &name) {
        std::shared_ptr<size_t> &place = labels_[name];
        if (!place) place = std::make_shared<size_t>(unknown);
        return place;
    }

    void read_statements(const std::string &text) {
        size_t at = 0;
        static const std::regex named(R"(^([$\w]+):)");
        while ((at = text.find_first_not_of(" \t\n", at)) != std::string::npos) {
            std::smatch found;
            if (text[at] == '{' || text[at] == '}') { // names of an inner scope are written before they are read
                at++;
            } else if (std::regex_search(text.begin() + static_cast<long>(at), text.end(), found, named,
                                         std::regex_constants::match_continuous)) {
                *label(found[1]) = entry_.code.size();
                at += static_cast<size_t>(found.length());
            } else {
                const size_t end = text.find(';', at);
                if (end == std::string::npos) throw std::runtime_error("ptx: no ';' after " + text.substr(at, 40));
                read_statement(trimmed(text.substr(at, end - at)));
                at = end + 1;
            }
        }
    }

    void read_statement(const std::string &statement) {
        if (statement.starts_with(".reg")) return;
        static const std::regex local(R"(\.local\s.*\[(\d+)\])");
        if (std::smatch bytes; std::regex_match(statement, bytes, local)) {
            entry_.local_bytes = std::stoul(bytes[1]);
            return;
        }
        static const std::regex form(R"((?:@(!?)(%\w+)\s+)?([a-z][\w.]*)\s*([\s\S]*))");
        std::smatch found;
        if (!std::regex_match(statement, found, form)) throw std::runtime_error("ptx: not understood: " + statement);
        const Naming naming{[this](const std::string &name) { return number(name); },
                            [this](const std::string &name) { return entry_.offsets.at(name); },
                            [this](const std::string &name) { return label(name); }, shared_};
        Instruction instruction;
        try {
            const std::string operands = found[4];
            instruction.action =
                action_of(split(found[3], '.'), operands.empty() ? std::vector<std::string>{} : split(operands, ','), naming);
        } catch (const std::exception &error) {
            throw std::runtime_error("ptx: " + statement + ": " + error.what());
        }
        if (found[2].matched) instruction.predicate = number(found[2]), instruction.if_false = found[1] == "!";
        entry_.code.push_back(std::move(instruction));
    }

    std::string shared_;
    Entry entry_;
    std::map<std::string, int> numbers_;
    std::map<std::string, std::shared_ptr<size_t>> labels_;
};

/// Where the brace that opens at `at` closes.
size_t closing(const std::string &text, size_t at) {
    int depth = 0;
    for (; at < text.size(); at++) {
        depth += text[at] == '{';
        depth -= text[at] == '}';
        if (depth == 0) return at;
    }
    throw std::runtime_error("ptx: a brace is open at the end");
}

} // namespace

Module::Module(const std::string &source) {
    const std::string text = without_comments(source);
    std::smatch shared;
    std::regex_search(text, shared, std::regex(R"(\.extern\s+\.shared\s+\.align\s+\d+\s+\.b8\s+(\w+)\[\])"));
    size_t at = 0;
    while ((at = text.find(".entry", at)) != std::string::npos) {
        const size_t open = text.find('(', at), close = text.find(')', open), brace = text.find('{', close), end = closing(text, brace);
        const std::string name = trimmed(text.substr(at + 6, open - at - 6));
        entries_[name] = EntryParser(shared[1]).parse(text.substr(open + 1, close - open - 1), text.substr(close + 1, brace - close - 1),
                                                      text.substr(brace + 1, end - brace - 1));
        at = end;
    }
}

std::string text_of_fat_binary(const void *image) {
    struct Header {
        uint32_t magic;
        uint16_t version, bytes;
        uint64_t size;
    };
    struct Part {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t size;
        uint32_t compressed_size, options;
        uint16_t minor, major;
        uint32_t card, name_offset, name_size;
        uint64_t flags, zero, whole_size;
    };
    constexpr uint16_t ptx = 1;
    constexpr uint64_t is_zstd = 0x8000;
    Header header;
    std::memcpy(&header, image, sizeof header);
    if (header.magic != 0xba55ed50) throw std::runtime_error("ptx: no fat binary");
    const auto *at = static_cast<const unsigned char *>(image) + header.bytes, *end = at + header.size;
    while (at < end) {
        Part part;
        std::memcpy(&part, at, sizeof part);
        const unsigned char *content = at + part.header_bytes;
        at = content + part.size;
        if (part.kind != ptx) continue;
        if (!(part.flags & is_zstd)) return {reinterpret_cast<const char *>(content), part.size};
        void *library = dlopen("libzstd.so.1", RTLD_NOW);
        auto *decompress =
            library ? reinterpret_cast<size_t (*)(void *, size_t, const void *, size_t)>(dlsym(library, "ZSTD_decompress")) : nullptr;
        std::string text(part.whole_size, '\0');
        if (!decompress || decompress(text.data(), text.size(), content, part.compressed_size) != text.size())
            throw std::runtime_error("ptx: libzstd.so.1 must decompress the text");
        return text;
    }
    throw std::runtime_error("ptx: the fat binary has no text");
}

} // namespace scalide::ptx
