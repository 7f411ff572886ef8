// Package bpe merges tokens: byte-pair encoding (Sennrich et al. 2016) of the tokens of a word by a table of merges,
// and how such a table is learnt. Its callers decide whether tokens are made of bytes or of characters.
package bpe

// heap is a binary heap. With a total order, what pop returns does not depend on the order of the pushes.
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
}

func (h *heap[T]) push(v T) {
	h.items = append(h.items, v)
	for i := len(h.items) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(h.items[i], h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

// pop removes and returns the least item, or false if there is none.
func (h *heap[T]) pop() (least T, ok bool) {
	if len(h.items) == 0 {
		return least, false
	}
	last := len(h.items) - 1
	least, h.items[0] = h.items[0], h.items[last]
	h.items = h.items[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return least, true
		}
		if child+1 < last && h.less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.less(h.items[child], h.items[i]) {
			return least, true
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		i = child
	}
}
