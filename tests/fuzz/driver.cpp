// driver RUNS SEED FOLDER...: calls the target on each file in the folders, then on RUNS mutations of them (cut, doubled, spliced, bytes
// changed), the same ones for the same seed. A crash is found again with the same arguments. Folders may be missing, but not all.
#include "fuzz/target.h"
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace {

namespace fs = std::filesystem;

class Mutator {
public:
    Mutator(std::vector<std::string> seeds, uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

    std::string next() {
        std::string text = pick();
        for (size_t count = random_() % 4; count > 0; count--) mutate(text);
        return text;
    }

private:
    const std::string &pick() { return seeds_[random_() % seeds_.size()]; }
    size_t place(const std::string &text) { return random_() % (text.size() + 1); }

    void mutate(std::string &text) {
        const size_t at = place(text), length = random_() % 16;
        switch (random_() % 6) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, text.substr(place(text), length)); break;
        case 2: text.insert(at, 1, static_cast<char>(random_())); break;
        case 3: text.resize(at); break;
        case 4: {
            const std::string &other = pick();
            const size_t from = place(other);
            text.insert(at, other.substr(from, length * 4));
            break;
        }
        default:
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random_() % 8));
        }
    }

    std::vector<std::string> seeds_;
    std::mt19937_64 random_;
};

std::vector<std::string> read_seeds(int count, char **paths) {
    std::vector<std::string> seeds;
    for (int i = 0; i < count; i++) {
        if (!fs::is_directory(paths[i])) continue;
        for (const fs::directory_entry &entry : fs::recursive_directory_iterator(paths[i])) {
            if (!entry.is_regular_file()) continue;
            std::ifstream in(entry.path(), std::ios::binary);
            seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
        }
    }
    return seeds;
}

void call_target(const std::string &text) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size()); }

} // namespace

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: driver RUNS SEED FOLDER...\n");
        return 2;
    }
    const uint64_t runs = std::stoull(argv[1]), seed = std::stoull(argv[2]);
    std::vector<std::string> seeds = read_seeds(argc - 3, argv + 3);
    if (seeds.empty()) {
        std::fprintf(stderr, "no files in the given folders\n");
        return 2;
    }
    std::printf("%llu runs, seed %llu, %zu seed files\n", static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed),
                seeds.size());
    std::fflush(stdout);
    for (const std::string &text : seeds) call_target(text);
    Mutator mutator(std::move(seeds), seed);
    for (uint64_t run = 0; run < runs; run++) call_target(mutator.next());
}
