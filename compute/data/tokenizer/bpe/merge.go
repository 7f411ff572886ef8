package bpe

// Pair is two adjacent tokens.
type Pair struct{ Left, Right uint32 }

// Merge is a pair and the token that it becomes.
type Merge struct {
	Pair
	ID uint32
}

// Table is merges by rank. The zero Table has none.
type Table struct {
	merges []Merge
	ranks  map[Pair]int // index into merges
}

// Merges lists the merges by rank. They must not be changed.
func (t *Table) Merges() []Merge { return t.merges }

// Add adds the merge with the next rank, or returns false if the pair has one.
func (t *Table) Add(m Merge) bool {
	if t.ranks == nil {
		t.ranks = map[Pair]int{}
	}
	if _, ok := t.ranks[m.Pair]; ok {
		return false
	}
	t.ranks[m.Pair] = len(t.merges)
	t.merges = append(t.merges, m)
	return true
}

// Merger merges the tokens of words, one word after the other.
type Merger struct {
	table   *Table
	symbols []symbol
	queue   heap[candidate]
}

// NewMerger returns a Merger by a table, which must not change while it is used.
func NewMerger(t *Table) *Merger {
	m := &Merger{table: t}
	m.queue.less = func(a, b candidate) bool {
		return a.rank < b.rank || a.rank == b.rank && a.at < b.at
	}
	return m
}

// symbol is a token of the word being merged, in a doubly linked list; -1 is no neighbour.
type symbol struct {
	id         uint32
	prev, next int
	gone       bool // merged into its left neighbour
}

// candidate is a merge that was possible when it was queued: of the symbol at a position with the one after it.
type candidate struct{ rank, at int }

// Append appends the tokens of a word to out: ids, of which the pair with the lowest rank is merged, the leftmost
// first, until no pair can be. It takes time n log n in their number, which a hostile text may make as large as itself.
func (m *Merger) Append(out, ids []uint32) []uint32 {
	if len(ids) == 0 {
		return out
	}
	m.symbols = m.symbols[:0]
	for i, id := range ids {
		m.symbols = append(m.symbols, symbol{id: id, prev: i - 1, next: i + 1})
	}
	m.symbols[len(ids)-1].next = -1
	for i := range ids {
		m.propose(i)
	}
	for c, ok := m.queue.pop(); ok; c, ok = m.queue.pop() {
		left := &m.symbols[c.at]
		if rank, ok := m.rank(c.at); !ok || rank != c.rank {
			continue // the neighbourhood has changed since
		}
		right := &m.symbols[left.next]
		right.gone = true
		left.id, left.next = m.table.merges[c.rank].ID, right.next
		if left.next >= 0 {
			m.symbols[left.next].prev = c.at
		}
		m.propose(left.prev)
		m.propose(c.at)
	}
	for i := range m.symbols {
		if s := &m.symbols[i]; !s.gone {
			out = append(out, s.id)
		}
	}
	return out
}

// propose queues the merge of the symbol at a position with the next one, if there is such a merge.
func (m *Merger) propose(at int) {
	if rank, ok := m.rank(at); ok {
		m.queue.push(candidate{rank, at})
	}
}

func (m *Merger) rank(at int) (int, bool) {
	if at < 0 || m.symbols[at].gone || m.symbols[at].next < 0 {
		return 0, false
	}
	s := m.symbols[at]
	rank, ok := m.table.ranks[Pair{s.id, m.symbols[s.next].id}]
	return rank, ok
}
