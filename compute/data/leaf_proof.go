package data

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
)

// LeafBytes is the size of a leaf of a shard's tree; the last leaf may be shorter. No token lies in two leaves.
const LeafBytes = 4096

// ErrLeafProof is returned for excerpts that do not show what they should.
var ErrLeafProof = errors.New("data: the excerpts do not show these tokens")

// TokenRange is the tokens From up to To of the stream.
type TokenRange struct{ From, To uint64 }

// LeafProof is the leaves of one shard that hold some spans, with the proof that they are the shard's.
type LeafProof struct {
	Shard uint32         `cbor:"1,keyasint"`
	Bytes []byte         `cbor:"2,keyasint"` // of the leaves, one after the other
	Cover []canon.Digest `cbor:"3,keyasint"` // of the leaves in the shard's tree
}

func shardTree(raw []byte) *canon.Tree {
	return canon.NewTree(canon.Leaves(slices.Collect(slices.Chunk(raw, LeafBytes))))
}

// Spans returns where in the stream the elements lo up to hi of Batch are: the windows at the address one after the
// other, each of seqLen tokens and one target more. The manifest must have passed Check. The error wraps ErrAddress or
// is a *TooShortError.
func (m Manifest) Spans(a Address, seqLen, lo, hi int) ([]TokenRange, error) {
	if m.TrainTokens <= uint64(max(seqLen, 0)) || seqLen < 1 {
		return nil, &TooShortError{Tokens: int(m.TrainTokens), SeqLen: seqLen}
	}
	place, err := a.first()
	if err != nil {
		return nil, err
	}
	width := seqLen + 1
	if lo < 0 || lo > hi || hi > int(a.Batch)*width {
		return nil, fmt.Errorf("%w: elements %d to %d of %d windows of %d", ErrAddress, lo, hi, a.Batch, width)
	}
	n := (m.TrainTokens - 1) / uint64(seqLen)
	var out []TokenRange
	for lo < hi {
		end := min(hi, (lo/width+1)*width)
		at := a.window(place+uint64(lo/width), n) * uint64(seqLen)
		out = append(out, TokenRange{at + uint64(lo%width), at + uint64(lo%width+end-lo)})
		lo = end
	}
	return out, nil
}

// part is the leaves of one shard that hold some spans.
type part struct {
	shard  int
	leaves []int // ascending
}

// parts lists the leaves that hold the spans, by shard, ascending.
func (m Manifest) parts(spans []TokenRange) ([]part, error) {
	perShard, perLeaf := m.ShardTokens, uint64(LeafBytes/m.Width)
	var at [][2]int // shard, leaf
	for _, s := range spans {
		if s.From > s.To || s.To > m.tokens() {
			return nil, fmt.Errorf("%w: tokens %d to %d of %d", ErrLeafProof, s.From, s.To, m.tokens())
		}
		for t := s.From; t < s.To; {
			shard, in := t/perShard, t%perShard
			at = append(at, [2]int{int(shard), int(in / perLeaf)})
			t = shard*perShard + min(perShard, (in/perLeaf+1)*perLeaf)
		}
	}
	slices.SortFunc(at, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	var out []part
	for _, x := range slices.Compact(at) {
		if len(out) == 0 || out[len(out)-1].shard != x[0] {
			out = append(out, part{shard: x[0]})
		}
		p := &out[len(out)-1]
		p.leaves = append(p.leaves, x[1])
	}
	return out, nil
}

// leaf returns where leaf i of a shard of the given size is.
func leaf(i int, size int64) (from, to int64) {
	return int64(i) * LeafBytes, min(int64(i+1)*LeafBytes, size)
}

// LeafProofs shows the leaves that hold the spans. The manifest must be the corpus's own.
func (c *Corpus) LeafProofs(m Manifest, spans []TokenRange) ([]LeafProof, error) {
	shards := c.Shards(int(m.ShardTokens))
	return m.LeafProofs(spans, func(i int) ([]byte, error) { return shards[i], nil })
}

// LeafProofs shows the leaves that hold the spans, of shards that shard returns: the manifest's own. The manifest must
// have passed Check.
func (m Manifest) LeafProofs(spans []TokenRange, shard func(i int) ([]byte, error)) ([]LeafProof, error) {
	parts, err := m.parts(spans)
	if err != nil {
		return nil, err
	}
	out := make([]LeafProof, len(parts))
	for i, p := range parts {
		raw, err := shard(p.shard)
		if err != nil {
			return nil, err
		}
		out[i].Shard = uint32(p.shard)
		for _, l := range p.leaves {
			from, to := leaf(l, int64(len(raw)))
			out[i].Bytes = append(out[i].Bytes, raw[from:to]...)
		}
		if out[i].Cover, err = shardTree(raw).Cover(p.leaves); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Read returns the tokens of the spans from excerpts, which may come from anybody and must be those of exactly these
// spans. The manifest must have passed Check. The error wraps ErrLeafProof.
func (m Manifest) Read(spans []TokenRange, excerpts []LeafProof) ([]int32, error) {
	parts, err := m.parts(spans)
	if err != nil {
		return nil, err
	}
	if len(excerpts) != len(parts) {
		return nil, fmt.Errorf("%w: excerpts of %d shards, they are in %d", ErrLeafProof, len(excerpts), len(parts))
	}
	known := map[[2]int]Tokens{}
	for i, p := range parts {
		leaves, err := m.open(p, excerpts[i])
		if err != nil {
			return nil, err
		}
		for k, l := range p.leaves {
			known[[2]int{p.shard, l}] = Tokens{int(m.Width), leaves[k]}
		}
	}
	perLeaf := uint64(LeafBytes / m.Width)
	var out []int32
	for _, s := range spans {
		for t := s.From; t < s.To; t++ {
			in := t % m.ShardTokens
			tokens := known[[2]int{int(t / m.ShardTokens), int(in / perLeaf)}]
			out = append(out, int32(tokens.At(int(in%perLeaf))))
		}
	}
	return out, nil
}

// open returns the bytes of the leaves of an excerpt.
func (m Manifest) open(p part, e LeafProof) ([][]byte, error) {
	size := m.ShardBytes(p.shard)
	var leaves [][]byte
	var digests []canon.Digest
	rest := e.Bytes
	for _, l := range p.leaves {
		from, to := leaf(l, size)
		if int64(len(rest)) < to-from {
			return nil, fmt.Errorf("%w: %d bytes of shard %d are too few", ErrLeafProof, len(e.Bytes), p.shard)
		}
		leaves = append(leaves, rest[:to-from])
		digests = append(digests, canon.Leaf(rest[:to-from]))
		rest = rest[to-from:]
	}
	if len(rest) > 0 || int(e.Shard) != p.shard {
		return nil, fmt.Errorf("%w: %d bytes too many, or not shard %d", ErrLeafProof, len(rest), p.shard)
	}
	root, err := canon.Covered(int((size+LeafBytes-1)/LeafBytes), p.leaves, digests, e.Cover)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLeafProof, err)
	}
	if root != m.Shards[p.shard] {
		return nil, fmt.Errorf("%w: shard %d has root %s, the manifest says %s", ErrLeafProof, p.shard, root.Short(),
			m.Shards[p.shard].Short())
	}
	return leaves, nil
}
