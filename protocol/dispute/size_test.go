package dispute

import (
	"testing"

	"github.com/starling-network/starling/canon"
)

// The largest disputes that are promised: 1000 inner steps in 1 to 64 segments, 1000 operators, of which one makes up to
// 402,056 tiles of 4 KiB: the logits of GPT-2 over 8 sequences of 1024 tokens.
func TestSizeOfAGame(t *testing.T) {
	t.Log("segments    tiles  moves of asserter  of challenger  bytes of digests  bytes of game")
	for _, segments := range []uint32{1, 4, 50, 64} {
		for _, tiles := range []int{1, 16, 576, 2304, 37693, 50257, 402056} {
			if segments == 1 || tiles <= 2304 {
				sizeOfGames(t, segments, tiles)
			}
		}
	}
}

func sizeOfGames(t *testing.T, segments uint32, tiles int) {
	per := (1000 + segments - 1) / segments
	var steps []uint32
	for left := uint32(1000); left > 0; left -= min(per, left) {
		steps = append(steps, min(per, left))
	}
	honest := big{truth(steps, 1000, 160), tiles, canon.NewTree(make([]canon.Digest, tiles))}
	var moves [2]uint32
	var hashes uint64
	var state int
	for _, tile := range []int{0, tiles - 1} {
		liar := honest
		leaves := make([]canon.Digest, tiles)
		leaves[tile][0] = 1
		liar.tree = canon.NewTree(leaves)
		for _, step := range []int{0, 500, 999} {
			for _, op := range []int{0, 255, 999} {
				liar.lie, liar.op = step, op
				g := open(t, liar.config(), segment(honest.fake, liar.fake))
				for height := int64(101); g.Stage != Over; height++ {
					from, m, err := next(g, liar, honest)
					if err != nil {
						t.Fatal(err)
					}
					if g, err = g.Apply(height, from, m, honest); err != nil {
						t.Fatal(err)
					}
					state = max(state, len(canon.MustMarshal(g)))
				}
				if v := g.Verdict; !v.AsserterLies || int(v.Operator) != op || int(v.Tile) != tile {
					t.Fatalf("step %d, operator %d, tile %d: %+v", step, op, tile, *v)
				}
				moves[0], moves[1] = max(moves[0], g.Moves[0]), max(moves[1], g.Moves[1])
				hashes = max(hashes, g.HashBytes)
			}
		}
	}
	t.Logf("%8d %8d %18d %14d %17d %14d", segments, tiles, moves[0], moves[1], hashes, state)
	if moves[0] > 9 || moves[1] > 9 || hashes > 16<<10 || state > 16<<10 {
		t.Errorf("%d segments, %d tiles: moves %v, %d bytes of digests, game of %d bytes", segments, tiles, moves, hashes, state)
	}
}

// big is an execution of which every operator makes the same output of many tiles, and the wrong one another.
type big struct {
	fake
	count int
	tree  *canon.Tree
}

func (b big) Tiles(uint32) uint32 { return uint32(b.count) }

func (b big) Output(step, op uint32) (*canon.Tree, error) { return b.tree, nil }

func (b big) Trace(step uint32) (*canon.Tree, error) {
	leaves := make([]canon.Digest, b.operators)
	for i := range leaves {
		leaves[i] = canon.Hash("output", []any{step, i})
		if b.lie >= 0 && i >= b.op {
			leaves[i] = b.Root(uint32(i), b.tree.Root())
		}
	}
	return canon.NewTree(leaves), nil
}

func (b big) Leaf(Claim, func(int) (canon.Proof, error)) ([]byte, error) { return nil, nil }

func (b big) Judge(c Claim, _ []byte) (Ruling, error) { return Ruling{Right: c.Output.IsZero()}, nil }
