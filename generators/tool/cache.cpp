#include "emit/cache.h"
#include "tool/common.h"
#include <fmt/core.h>

namespace scalide {

void add_cache(CLI::App &app) {
    struct CacheCommand {
        std::string folder = ObjectCache::default_folder().string();
        bool clear = false;
    };
    const auto command = std::make_shared<CacheCommand>();
    CLI::App *cache = app.add_subcommand("cache", "Print the size of the kernel cache, or clear it.");
    cache->add_option("--cache", command->folder, "Cache folder.")->capture_default_str();
    cache->add_flag("--clear", command->clear, "Remove all files of the cache.");
    cache->callback([command] {
        const ObjectCache cache(command->folder);
        if (command->clear) {
            fmt::print("{}: {} files removed\n", command->folder, cache.clear());
        } else {
            const ObjectCache::Usage usage = cache.usage();
            fmt::print("{}: {} kernels, {:.1f} MiB of at most {:.0f} MiB\n", command->folder, usage.kernels, usage.bytes / 1048576.0,
                       usage.limit / 1048576.0);
        }
    });
}

} // namespace scalide
