#pragma once
#include "ir/program.h"
#include "schedules/tables/tiles.h"

namespace scalide {

/// The text of tuning.yaml, which is compiled into the tool.
extern const char *const tuning_text;

/// A program that is measured with several tile numbers.
struct TuningWork {
    std::string name;
    Program program;
};

/// An entry of a table of tile numbers that `scalide tune` writes: its conditions, the alternatives of its numbers, and works.
struct TuningEntry {
    Location location;
    std::string kind, form;
    std::string extents;               ///< as YAML: "{n: [0, 16]}"; empty: no condition
    std::vector<std::string> features; ///< that the machine must have
    std::vector<std::pair<std::string, std::vector<int>>> tiles;
    std::vector<TuningWork> works;

    /// Returns "contract vectors {n: [0, 16]}".
    std::string name() const;
    /// Returns the lines of the entry with these numbers, for the CPU that `host` means.
    std::string text(const Tiles &numbers) const;
    /// Returns the entry for the CPU that `host` means, with any numbers.
    TileRow row() const;
};

/// Reads a table in the format of tuning.yaml. Throws UserError with file and line if it is invalid.
std::vector<TuningEntry> read_tuning(const std::string &text, const std::string &file);

} // namespace scalide
