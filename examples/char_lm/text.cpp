#include "text.h"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace {

std::string read_file(const std::filesystem::path &path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
}

std::vector<std::string> paragraphs_of(const std::string &text) {
    std::vector<std::string> paragraphs;
    for (size_t begin = 0, end; begin < text.size(); begin = end + 2) {
        end = std::min(text.find("\n\n", begin), text.size());
        paragraphs.push_back(text.substr(begin, end - begin));
    }
    return paragraphs;
}

void append(std::vector<int32_t> &ids, const std::string &text, size_t begin, int length) {
    for (int i = 0; i < length; i++) ids.push_back(static_cast<unsigned char>(text[begin + i]));
}

} // namespace

Text read_text(const std::string &folder, size_t least) {
    std::set<std::filesystem::path> files; // each file once: some names are links
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        if (entry.is_regular_file()) files.insert(std::filesystem::canonical(entry.path()));
    Text text;
    std::set<std::string> known;
    size_t count = 0;
    for (const std::filesystem::path &file : files)
        for (const std::string &paragraph : paragraphs_of(read_file(file)))
            if (known.insert(paragraph).second) (count++ % 20 == 0 ? text.held_out : text.trained) += paragraph + "\n\n";
    if (std::min(text.trained.size(), text.held_out.size()) < least)
        throw std::runtime_error(folder + ": must have text files with at least " + std::to_string(20 * least) +
                                 " bytes. Use --text FOLDER.");
    return text;
}

std::vector<int32_t> random_windows(const std::string &text, std::mt19937_64 &random, int batch, int length) {
    std::vector<int32_t> ids;
    for (int i = 0; i < batch; i++) append(ids, text, random() % (text.size() - length + 1), length);
    return ids;
}

std::vector<int32_t> windows_of(const std::string &text, int number, int batch, int length) {
    std::vector<int32_t> ids;
    const size_t first = size_t(number) * batch * length;
    if (first + size_t(batch) * length > text.size()) return ids;
    for (int i = 0; i < batch; i++) append(ids, text, first + size_t(i) * length, length);
    return ids;
}
