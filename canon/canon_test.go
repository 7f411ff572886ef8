package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"runtime"
	"testing"
)

type pair struct {
	A uint32 `cbor:"1,keyasint"`
	B string `cbor:"2,keyasint"`
	D Digest `cbor:"3,keyasint"`
}

func TestRoundTripIsCanonical(t *testing.T) {
	in := pair{A: 7, B: "x", D: Sum("t", []byte("y"))}
	var out pair
	if err := Unmarshal(MustMarshal(in), &out); err != nil || out != in {
		t.Fatalf("got %+v, %v, want %+v", out, err, in)
	}
}

func TestUnmarshalRejects(t *testing.T) {
	for name, text := range map[string]string{
		"integer not in its shortest form": "a301190007026178" + "035820" + zeros(32),
		"unknown field":                    "a4010702617803" + "5820" + zeros(32) + "0401",
		"duplicate key":                    "a401070107026178" + "035820" + zeros(32),
		"short digest":                     "a30107026178034100",
		"trailing byte":                    "a3010702617803" + "5820" + zeros(32) + "00",
		"truncated":                        "a30107",
		"indefinite length":                "bf0107026178035820" + zeros(32) + "ff",
	} {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		var p pair
		if err := Unmarshal(raw, &p); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
	}
	// Keys out of order decode, but are not canonical.
	raw, _ := hex.DecodeString("a3026178" + "0107" + "035820" + zeros(32))
	if err := Unmarshal(raw, new(pair)); !errors.Is(err, ErrNotCanonical) {
		t.Errorf("keys out of order: %v, want ErrNotCanonical", err)
	}
}

func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }

func TestSumSeparatesDomainsAndParts(t *testing.T) {
	a, b := []byte("ab"), []byte("c")
	seen := map[Digest]bool{}
	for _, d := range []Digest{Sum("x", a, b), Sum("x", []byte("a"), []byte("bc")), Sum("y", a, b),
		Sum("x", append(a, b...))} {
		if seen[d] {
			t.Fatal("two different inputs share a digest")
		}
		seen[d] = true
	}
}

// A digest covers the domain and the parts, each after its length in eight bytes, whatever their sizes.
func TestSumIsOfItsBytes(t *testing.T) {
	framed := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(binary.LittleEndian.AppendUint64(b, uint64(len(p))), p...)
		}
		return b
	}
	whole := bytes.Repeat([]byte("starling"), 100)
	for n := range len(whole) {
		one, rest := whole[:n/3], whole[n/3:n]
		if got, want := Sum("domain", one, rest), Digest(sha256.Sum256(framed([]byte("domain"), one, rest))); got != want {
			t.Fatalf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

func leaves(n int) []Digest {
	out := make([]Digest, n)
	for i := range out {
		out[i] = Leaf([]byte{byte(i), byte(i >> 8)})
	}
	return out
}

func TestProofsVerifyAndNothingElseDoes(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 255, 256, 257, 1000} {
		tree := NewTree(leaves(n))
		for i := 0; i < n; i += 1 + n/37 {
			p, err := tree.Proof(i)
			if err != nil {
				t.Fatal(err)
			}
			leaf := tree.levels[0][i]
			if !p.Verify(tree.Root(), n, i, leaf) {
				t.Fatalf("n=%d: proof of leaf %d rejected", n, i)
			}
			if p.Verify(tree.Root(), n, (i+1)%n, leaf) && n > 1 {
				t.Fatalf("n=%d: proof of leaf %d accepted for its neighbour", n, i)
			}
			if p.Verify(tree.Root(), n+1, i, leaf) || p.Verify(tree.Root(), n, i, Leaf([]byte("other"))) {
				t.Fatalf("n=%d: false proof of leaf %d accepted", n, i)
			}
		}
	}
}

func TestDescentReachesEveryLeaf(t *testing.T) {
	for _, n := range []int{2, 16, 17, 300} {
		tree := NewTree(leaves(n))
		for want := range n {
			node, i := tree.Top(), 0
			for level := Height(n); level > 0; level-- {
				c, err := tree.Children(level, i)
				if err != nil || !verifyChildren(node, n, level, i, c) {
					t.Fatalf("n=%d level %d node %d: children rejected (%v)", n, level, i, err)
				}
				below := want
				for range level - 1 {
					below /= Fanout
				}
				node, i = c[below-Fanout*i], below
			}
			if node != tree.levels[0][want] {
				t.Fatalf("n=%d: descent to %d ended elsewhere", n, want)
			}
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(MustMarshal(pair{A: 1, B: "b"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p pair
		if Unmarshal(data, &p) == nil && string(MustMarshal(p)) != string(data) {
			t.Fatal("accepted bytes that Marshal does not produce")
		}
	})
}

func TestCoversShowExactlyTheirLeaves(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 255, 257, 1000} {
		tree := NewTree(leaves(n))
		for _, at := range [][]int{{0}, {n - 1}, {0, n - 1}, {n / 2, n/2 + 1, n/2 + 2}, {n / 7, n / 3, n / 2}} {
			cover, err := tree.Cover(at)
			if checkCover(n, at) != nil {
				if err == nil {
					t.Fatalf("n=%d: %v was covered", n, at)
				}
				continue
			}
			var known []Digest
			for _, i := range at {
				known = append(known, tree.levels[0][i])
			}
			if root, err := Covered(n, at, known, cover); err != nil || root != tree.Root() {
				t.Fatalf("n=%d %v: %v", n, at, err)
			}
			if root, err := Covered(n, at, known, append(cover[:len(cover):len(cover)], Digest{})); err == nil {
				t.Fatalf("n=%d %v: a digest too many gives %v", n, at, root)
			}
			if len(cover) > 0 {
				if _, err := Covered(n, at, known, cover[1:]); err == nil {
					t.Fatalf("n=%d %v: a digest too few", n, at)
				}
			}
			known[0][3] ^= 1
			if root, err := Covered(n, at, known, cover); err == nil && root == tree.Root() {
				t.Fatalf("n=%d %v: another leaf is covered", n, at)
			}
		}
	}
	if _, err := Covered(5, nil, nil, nil); err == nil {
		t.Error("nothing has a root")
	}
}

// verifyChildren reports whether children are the children of node i on a level of a tree of n leaves with digest
// parent.
func verifyChildren(parent Digest, n, level, i int, children []Digest) bool {
	if level < 1 || level > Height(n) || i < 0 || i >= Width(n, level) {
		return false
	}
	below := Width(n, level-1)
	return len(children) == min(Fanout, below-Fanout*i) && Inner(level, children) == parent
}

// Bytes that are decoded or encoded take their own size, once for the value and once to compare.
func TestLargeValuesAreCopiedOnce(t *testing.T) {
	const size = 8 << 20
	taken := func(do func()) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / size
	}
	parts := make([][]byte, 64)
	for i := range parts {
		parts[i] = make([]byte, size/len(parts))
	}
	var data []byte
	if n := taken(func() { data = MustMarshalSized(parts, size+1024) }); n > 1.1 {
		t.Errorf("to encode takes %.2f of the bytes", n)
	}
	if !bytes.Equal(data, MustMarshal(parts)) {
		t.Error("another encoding")
	}
	var again [][]byte
	if n := taken(func() {
		if err := Unmarshal(data, &again); err != nil {
			t.Error(err)
		}
	}); n > 2.1 {
		t.Errorf("to decode takes %.2f of the bytes", n)
	}
}
