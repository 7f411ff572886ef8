package canon

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"iter"
	"sync"
)

//go:generate go run ./gen

// lanes is a compression function of SHA-256 that takes width messages side by side.
type lanes struct {
	width int
	// compress takes some blocks of 64 bytes of every message. Word i of message m is state[i*width+m].
	compress func(state *uint32, messages **byte, blocks int)
}

// initial is the state that SHA-256 begins with (FIPS 180-4, section 5.3.3).
var initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// most is the largest width of lanes.
const most = 16

// Leaves digests leaves as Leaf does. Neighbours of equal length are digested side by side where that is faster.
func Leaves(data [][]byte) []Digest {
	out := make([]Digest, len(data))
	new(hasher).leaves(out, data)
	return out
}

// RootOfLeaves is the root of the Tree over leaves that are given one after the other. Of the tree it holds a Frontier
// alone. It reads a leaf when up to 15 more were given.
func RootOfLeaves(leaves iter.Seq[[]byte]) Digest {
	b := batches.Get().(*batch)
	defer b.leave()
	var f Frontier
	for leaf := range leaves {
		if b.given[b.n] = leaf; b.n+1 < most {
			b.n++
			continue
		}
		b.push(&f, most)
	}
	b.push(&f, b.n)
	return f.Root()
}

// batch is the memory in which RootOfLeaves digests leaves side by side.
type batch struct {
	hasher
	n       int // leaves that are not digested yet
	given   [most][]byte
	digests [most]Digest
}

// batches are those that no call uses: the tensors of a state are many, and each is a call.
var batches = sync.Pool{New: func() any { return new(batch) }}

// push digests the first n leaves, and appends their digests to a tree.
func (b *batch) push(f *Frontier, n int) {
	b.leaves(b.digests[:n], b.given[:n])
	for _, d := range b.digests[:n] {
		f.Push(d)
	}
	b.n = 0
}

// leave gives the batch to the next call, without what it has read.
func (b *batch) leave() {
	b.n = 0
	clear(b.given[:])
	clear(b.lanes.messages[:])
	batches.Put(b)
}

// A hasher has the memory that leaves are digested in.
type hasher struct {
	single hash.Hash // nil: none yet
	head   [1]byte   // of the message of a leaf
	lanes  struct {
		state    [8 * most]uint32
		messages [most]*byte
		ends     [most][2 * sha256.BlockSize]byte // of all messages
		first    [most][sha256.BlockSize]byte     // their first blocks, where those hold no end
	}
}

// leaves puts the digests of leaves into out.
func (h *hasher) leaves(out []Digest, data [][]byte) {
	for i := 0; i < len(data); {
		n := 1
		for n < fastest.width && i+n < len(data) && len(data[i+n]) == len(data[i]) {
			n++
		}
		if n > 1 && n == fastest.width {
			fastest.leaves(h, out[i:i+n], data[i:i+n])
		} else {
			n = 1
			h.leaf(&out[i], data[i])
		}
		i += n
	}
}

// leaf is Leaf.
func (h *hasher) leaf(out *Digest, data []byte) {
	if h.single == nil {
		h.single = sha256.New()
	}
	h.single.Reset()
	_, _ = h.single.Write(h.head[:])
	_, _ = h.single.Write(data)
	h.single.Sum(out[:0])
}

// leaves digests width leaves of one length: the message of each is a zero byte and the leaf.
func (l lanes) leaves(h *hasher, out []Digest, data [][]byte) {
	state, messages, ends, first := &h.lanes.state, &h.lanes.messages, &h.lanes.ends, &h.lanes.first
	for i, x := range initial {
		for m := range l.width {
			state[i*l.width+m] = x
		}
	}
	size := len(data[0])
	head := min(size, sha256.BlockSize-1) // bytes of the leaf in the first block
	whole := (size - head) / sha256.BlockSize
	tail := head + whole*sha256.BlockSize // where what fills no block begins

	clear(ends[:]) // they are copied out to be padded
	if head == sha256.BlockSize-1 {
		for m, leaf := range data {
			copy(first[m][1:], leaf[:head])
			messages[m] = &first[m][0]
		}
		l.compress(&state[0], &messages[0], 1)
		if whole > 0 {
			for m, leaf := range data {
				messages[m] = &leaf[head]
			}
			l.compress(&state[0], &messages[0], whole)
		}
	}
	blocks := 0
	for m, leaf := range data {
		end := &ends[m]
		n := 0
		if head == sha256.BlockSize-1 {
			n = copy(end[:], leaf[tail:])
		} else {
			n = 1 + copy(end[1:], leaf)
		}
		end[n] = 0x80
		blocks = (n+8)/sha256.BlockSize + 1
		binary.BigEndian.PutUint64(end[blocks*sha256.BlockSize-8:], 8*(uint64(size)+1))
		messages[m] = &end[0]
	}
	l.compress(&state[0], &messages[0], blocks)
	for m := range out {
		for i := range initial {
			binary.BigEndian.PutUint32(out[m][4*i:], state[i*l.width+m])
		}
	}
}
