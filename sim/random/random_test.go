package random

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	seeds  = flag.Int64("seeds", 1, "how many seeds TestRandomOperations plays")
	first  = flag.Int64("seed", 3, "the first of them")
	blocks = flag.Int("blocks", 60, "blocks of each")
	size   = flag.Int("size", 30, "operations of a block, about")

	messages = flag.Int("messages", 2_000, "how many messages TestCoinsAreConserved has executed at least")
)

// TestCoinsAreConserved has many messages in a block, since the coins are counted after each, and ends before this
// number of blocks.
const (
	crowd      = 300
	manyBlocks = 100_000
)

// child says which process the test is: what it says is played is only played, and its hash printed.
const child = "STARLING_TEST_RANDOM"

// Under random accounts every message is executed or refused by a rule, every module accounts for its coins after every
// block, and the same seed makes the same application hash: again (of the first), and in another process, with another
// number of processors. The second play in this process needs -long, or more seeds.
func TestRandomOperations(t *testing.T) {
	types, passed := map[string]bool{}, 0
	for seed := *first; seed < *first+*seeds; seed++ {
		o := Options{Seed: seed, Blocks: *blocks, Size: *size}
		if os.Getenv(child) != "" {
			fmt.Println("ends in", play(t, o).Hash)
			return
		}
		o.Books = true
		r := play(t, o)
		o.Books = false
		if seed == *first && (*long || *seeds > 1) {
			if again := play(t, o); again.Hash != r.Hash {
				t.Errorf("seed %d ends in %s, and then in %s", seed, r.Hash, again.Hash)
			}
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRandomOperations$", "-seed",
			strconv.FormatInt(seed, 10), "-blocks", strconv.Itoa(*blocks), "-size", strconv.Itoa(*size))
		cmd.Env = append(os.Environ(), child+"=1", "GOMAXPROCS=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ends in "+r.Hash) {
			t.Errorf("seed %d ends in %s, and in another process: %v\n%s", seed, r.Hash, err, out)
		}
		executed, refused := 0, 0
		for _, m := range slices.Sorted(maps.Keys(r.Messages)) {
			executed, refused = executed+r.Messages[m].Executed, refused+r.Messages[m].Refused
			types[m] = true
			t.Log(m, r.Messages[m])
		}
		fmt.Printf("seed %d: %d blocks, %d messages of %d types, %d refused, %d proposals passed, ends in %s\n", seed,
			r.Blocks, executed, len(r.Messages), refused, r.Passed, r.Hash)
		if r.Blocks != *blocks || executed < 10*refused/3 {
			t.Errorf("seed %d: %d blocks, %d messages executed, %d refused", seed, r.Blocks, executed, refused)
		}
		passed += r.Passed
	}
	if *blocks >= 60 && (len(types) < 30 || passed == 0) { // of all: some seeds draw hardly an operation
		t.Errorf("%d types of messages, %d proposals passed", len(types), passed)
	}
}

// After every block of many random messages each of three coins is where the modules account for it, and no coin that
// was registered is made or lost.
func TestCoinsAreConserved(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	executed, refused, blocks := 0, 0, 0
	for seed := *first; executed < *messages; seed++ { // some seeds lose their validators early
		r := play(t, Options{Seed: seed, Blocks: manyBlocks, Size: crowd, Books: true, Messages: *messages - executed})
		blocks += r.Blocks
		for _, m := range r.Messages {
			executed, refused = executed+m.Executed, refused+m.Refused
		}
	}
	fmt.Printf("%d messages executed and %d refused in %d blocks\n", executed, refused, blocks)
}

// A seed whose run loses its units to a wait for members continues: a panic in an operation ends the play with an
// error, and not as if every validator was gone.
func TestRunWithoutUnitsEndsNoPlay(t *testing.T) {
	if r := play(t, Options{Seed: 4, Blocks: 24, Size: 30}); r.Blocks != 24 {
		t.Errorf("%d blocks", r.Blocks)
	}
}

func play(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Play(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
