package data

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Manifest describes the shards of a corpus: enough to fetch them from anybody and to know that they are right. The
// shards, one after the other, are the stream of tokens, each token Width bytes, little-endian.
type Manifest struct {
	Vocab       uint32         `cbor:"1,keyasint"` // every token is below
	Width       uint32         `cbor:"2,keyasint"` // bytes of a token: 2 if Vocab is at most 65536, else 4
	TrainTokens uint64         `cbor:"3,keyasint"` // the first tokens of the stream
	ValTokens   uint64         `cbor:"4,keyasint"` // the others
	ShardTokens uint64         `cbor:"5,keyasint"` // of every shard but the last, which may have fewer
	Shards      []canon.Digest `cbor:"6,keyasint"` // the root of the bytes of each: a canon.Tree of leaves of LeafBytes
}

// MaxTokens is the largest number of tokens of a corpus.
const MaxTokens = 1 << 40

var (
	// ErrManifest is returned for a manifest that contradicts itself.
	ErrManifest = errors.New("data: invalid manifest")
	// ErrShard is returned for shards that are not those of the manifest.
	ErrShard = errors.New("data: wrong shard")
)

// Shards cuts the stream of tokens in shards of maxTokens, the last of at most that. They share the memory of the
// corpus.
func (c *Corpus) Shards(maxTokens int) [][]byte {
	size := c.shardTokens(maxTokens) * c.all.width
	var shards [][]byte
	for raw := c.all.raw; len(raw) > 0; {
		n := min(size, len(raw))
		shards = append(shards, raw[:n:n])
		raw = raw[n:]
	}
	return shards
}

// Cut makes shards have at most some tokens, however many are asked for. It is called before the corpus is used.
func (c *Corpus) Cut(tokens int) { c.most = tokens }

// shardTokens is at most what the corpus has, so that a single shard has one spelling.
func (c *Corpus) shardTokens(maxTokens int) int {
	if c.most > 0 {
		maxTokens = min(maxTokens, c.most)
	}
	return max(1, min(maxTokens, c.all.Len()))
}

// Manifest describes Shards(maxTokens).
func (c *Corpus) Manifest(maxTokens int) Manifest {
	m := Manifest{
		Vocab:       c.Vocab,
		Width:       uint32(c.all.width),
		TrainTokens: uint64(c.Train.Len()),
		ValTokens:   uint64(c.Val.Len()),
		ShardTokens: uint64(c.shardTokens(maxTokens)),
	}
	for _, s := range c.Shards(maxTokens) {
		m.Shards = append(m.Shards, c.tree(s).Root())
	}
	return m
}

// tree is shardTree of a shard of the corpus, of which little is in memory at a time if the corpus is not.
func (c *Corpus) tree(shard []byte) *canon.Tree {
	if c.rest == nil {
		return shardTree(shard)
	}
	var leaves []canon.Digest
	for part := range slices.Chunk(shard, restBytes) {
		leaves = append(leaves, canon.Leaves(slices.Collect(slices.Chunk(part, LeafBytes)))...)
		c.rest(part)
	}
	return canon.NewTree(leaves)
}

// restBytes is a multiple of LeafBytes.
const restBytes = 16 << 20

// Encode returns the canonical bytes.
func (m Manifest) Encode() []byte { return canon.MustMarshal(m) }

// Digest names the corpus.
func (m Manifest) Digest() canon.Digest { return canon.Hash("starling/corpus/1", m) }

// DecodeManifest reads canonical bytes from anybody. The result has passed Check.
func DecodeManifest(raw []byte) (Manifest, error) {
	var m Manifest
	if err := canon.Unmarshal(raw, &m); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if err := m.Check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// Check reports, as an error that wraps ErrManifest, why no corpus has this manifest.
func (m Manifest) Check() error {
	switch {
	case m.Vocab == 0 || m.Vocab > 1<<31:
		return fmt.Errorf("%w: a vocabulary of %d", ErrManifest, m.Vocab)
	case m.Width != uint32(width(m.Vocab)):
		return fmt.Errorf("%w: %d bytes a token for a vocabulary of %d", ErrManifest, m.Width, m.Vocab)
	case m.TrainTokens > MaxTokens || m.ValTokens > MaxTokens || m.tokens() == 0 || m.tokens() > MaxTokens:
		return fmt.Errorf("%w: %d and %d tokens, need 1 to %d", ErrManifest, m.TrainTokens, m.ValTokens, uint64(MaxTokens))
	case m.ShardTokens == 0 || m.ShardTokens > m.tokens():
		return fmt.Errorf("%w: %d tokens a shard, need 1 to %d", ErrManifest, m.ShardTokens, m.tokens())
	}
	if need := (m.tokens() + m.ShardTokens - 1) / m.ShardTokens; uint64(len(m.Shards)) != need {
		return fmt.Errorf("%w: %d shards, its tokens need %d", ErrManifest, len(m.Shards), need)
	}
	return nil
}

func (m Manifest) tokens() uint64 { return m.TrainTokens + m.ValTokens }

// Bytes is the size of all shards.
func (m Manifest) Bytes() int64 { return int64(m.tokens()) * int64(m.Width) }

// ShardBytes is the size of shard i of a manifest that has passed Check.
func (m Manifest) ShardBytes(i int) int64 {
	n := min(m.ShardTokens, m.tokens()-uint64(i)*m.ShardTokens)
	return int64(n) * int64(m.Width)
}

// VerifyShard reports, as an error that wraps ErrShard, whether raw is not shard i of a manifest that has passed Check.
func (m Manifest) VerifyShard(i int, raw []byte) error {
	if i < 0 || i >= len(m.Shards) {
		return fmt.Errorf("%w: there is no shard %d of %d", ErrShard, i, len(m.Shards))
	}
	if int64(len(raw)) != m.ShardBytes(i) {
		return fmt.Errorf("%w: shard %d has %d bytes, the manifest says %d", ErrShard, i, len(raw), m.ShardBytes(i))
	}
	if got := shardTree(raw).Root(); got != m.Shards[i] {
		return fmt.Errorf("%w: shard %d has root %s, the manifest says %s", ErrShard, i, got.Short(), m.Shards[i].Short())
	}
	return nil
}

// Assemble makes the corpus from its shards, which may come from anybody: sizes, digests and every token are verified.
// shard is called for one after the other.
func Assemble(m Manifest, shard func(i int) ([]byte, error)) (*Corpus, error) {
	var to memory
	if err := m.Write(&to, shard); err != nil {
		return nil, err
	}
	return m.Corpus(to.raw, nil), nil
}

// Write writes the shards of a corpus, verified as by Assemble, one after the other from the first byte on.
func (m Manifest) Write(to io.WriterAt, shard func(i int) ([]byte, error)) error {
	if err := m.Check(); err != nil {
		return err
	}
	at := int64(0)
	for i := range m.Shards {
		raw, err := shard(i)
		if err == nil {
			err = m.VerifyShard(i, raw)
		}
		if err != nil {
			return err
		}
		t := Tokens{int(m.Width), raw}
		for k := range t.Len() {
			if id := t.At(k); id >= m.Vocab {
				return fmt.Errorf("%w: token %d of shard %d is %d, the vocabulary has %d", ErrShard, k, i, id, m.Vocab)
			}
		}
		if _, err := to.WriteAt(raw, at); err != nil {
			return err
		}
		at += int64(len(raw))
	}
	return nil
}

// Corpus is the corpus of the bytes that Write wrote, in memory or mapped. rest is as of Stream.Corpus.
func (m Manifest) Corpus(raw []byte, rest func(part []byte)) *Corpus {
	c := newCorpus(m.Vocab, Tokens{int(m.Width), raw[:m.Bytes():m.Bytes()]}, int(m.ValTokens))
	c.rest = rest
	return c
}
