// SPDX-License-Identifier: Apache-2.0
// The tasks of a thread, packed: a job of a thousand ranks has hundreds of millions.
//
// Memory: some 5 to 9 bytes for each task, and 16 for each kind of task (name, category, shape,
// depth).
// Thread-safety: const members from any thread.
#ifndef SYNCLINE_ANALYSIS_WHY_TASK_SPANS_H_
#define SYNCLINE_ANALYSIS_WHY_TASK_SPANS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <unordered_map>
#include <vector>

namespace syncline::analysis::why {

using NameId = uint32_t;  // index into JobInput::names; 0: ""

// A task of a thread.
struct TaskSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  NameId name = 0;      // "aten::conv2d", "c10d::allreduce_", "Optimizer.step#SGD.step"
  NameId category = 0;  // "PyTorch", "dnnl::primitive::execute", "python"
  NameId shape = 0;     // what its arguments say of the amount of work; 0: nothing
  uint16_t depth = 0;
  bool whole = true;  // both its ends were recorded
};

// In the order in which they were added. They can be read one after the other; whoever needs more
// unpacks them.
class TaskSpans {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = TaskSpan;
    using difference_type = std::ptrdiff_t;
    using pointer = const TaskSpan*;
    using reference = const TaskSpan&;

    Iterator() = default;
    reference operator*() const { return span_; }
    pointer operator->() const { return &span_; }
    Iterator& operator++() {
      at_ = next_;
      Read();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class TaskSpans;
    Iterator(const TaskSpans* spans, const uint8_t* at) : spans_(spans), at_(at) { Read(); }
    void Read();

    const TaskSpans* spans_ = nullptr;
    const uint8_t* at_ = nullptr;
    const uint8_t* next_ = nullptr;  // behind the one at `at_`
    TaskSpan span_;
  };

  TaskSpans() = default;
  TaskSpans(std::initializer_list<TaskSpan> spans);
  explicit TaskSpans(const std::vector<TaskSpan>& spans);

  void push_back(const TaskSpan& span);
  // Adds `more` to each shape but 0.
  void MoveShapes(NameId more);
  // No more will be added: gives back what was kept for that.
  void Close();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const { return {this, bytes_.data()}; }
  Iterator end() const { return {this, bytes_.data() + bytes_.size()}; }
  // `buffer`: memory to use, what is in it goes.
  std::vector<TaskSpan> Unpack(std::vector<TaskSpan> buffer = {}) const;
  // Changes them as a whole: `change(std::vector<TaskSpan>*)`.
  template <class Change>
  void Edit(const Change& change) {
    std::vector<TaskSpan> spans = Unpack();
    change(&spans);
    *this = TaskSpans(spans);
  }

 private:
  // What tasks share that differ only in their times.
  struct Kind {
    NameId name = 0;
    NameId category = 0;
    NameId shape = 0;
    uint16_t depth = 0;
    bool whole = true;
    bool operator==(const Kind&) const = default;
  };
  struct HashKind {
    size_t operator()(const Kind& kind) const;
  };

  std::vector<uint8_t> bytes_;
  std::vector<Kind> kinds_;
  std::unordered_map<Kind, uint32_t, HashKind> known_;  // indices into `kinds_`
  size_t size_ = 0;
  int64_t last_begin_ns_ = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TASK_SPANS_H_
