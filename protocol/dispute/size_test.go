package dispute

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/canon"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "play disputes of every size, as .ci/run does")

// The largest disputes that are promised: 1000 inner steps in 1 to 64 segments, 1000 operators, of which one is made in
// up to 16 million parts. The logits of GPT-2 over 8 sequences of 1024 tokens have 402,056 tiles, made in 12 parts
// each.
func TestSizeOfAGame(t *testing.T) {
	t.Log("segments    parts  moves of asserter  of challenger  bytes of digests  bytes of game")
	for _, segments := range []uint32{1, 4, 50, 64} {
		for _, parts := range []uint64{1, 16, 576, 37693, 402056 * 12, 1 << 24} {
			if largest := parts == 1<<24 && (segments == 1 || segments == 64); largest || *long {
				sizeOfGames(t, segments, parts)
			}
		}
	}
}

func sizeOfGames(t *testing.T, segments uint32, parts uint64) {
	per := (1000 + segments - 1) / segments
	var steps []uint32
	for left := uint32(1000); left > 0; left -= min(per, left) {
		steps = append(steps, min(per, left))
	}
	honest := truth(steps, 1000, 160)
	honest.parts = int(parts)
	var moves [2]uint32
	var hashes uint64
	var state int
	for _, part := range []int{0, int(parts / 2), int(parts - 1)} {
		for _, step := range []int{0, 500, 999} {
			for _, op := range []int{1, 255, 999} {
				liar := honest
				liar.lie, liar.op, liar.part = step, op, part
				g := open(t, liar.config(), segment(honest, liar))
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
				if v := g.Verdict; !v.AsserterLies || int(v.Operator) != op || int(v.Part) != part {
					t.Fatalf("step %d, operator %d, part %d: %+v", step, op, part, *v)
				}
				moves[0], moves[1] = max(moves[0], g.Moves[0]), max(moves[1], g.Moves[1])
				hashes = max(hashes, g.HashBytes)
			}
		}
	}
	t.Logf("%8d %8d %18d %14d %17d %14d", segments, parts, moves[0], moves[1], hashes, state)
	if moves[0] > 9 || moves[1] > 9 || hashes > 16<<10 || state > 16<<10 {
		t.Errorf("%d segments, %d parts: moves %v, %d bytes of digests, game of %d bytes", segments, parts, moves, hashes,
			state)
	}
}
