package ceremony

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark/backend/groth16/bn254/mpcsetup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/opening"
)

var small = proof.Shape{Rank: 1, In: 3, Out: 2}

// contributed is a setup with two contributions to each phase, which different parties made.
func contributed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := Start(dir, small, nil); err != nil {
		t.Fatal(err)
	}
	for _, beacon := range []string{"first", "second"} {
		for range 2 {
			if _, err := opened(t, dir).Contribute(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := opened(t, dir).Seal(t.Context(), beacon); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func opened(t *testing.T, dir string) *Setup {
	t.Helper()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The keys of a setup prove and verify, and are computed again from its files by each party that has them.
func TestKeysAreThoseOfTheContributions(t *testing.T) {
	dir := contributed(t)
	s := opened(t, dir)
	d, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, pk, err := Keys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if k := v.Key(); v.Digest() != d || k.Contributions != 2 || k.Transcript != s.Transcript() || k.Shape != small {
		t.Errorf("%s of %s, %d contributions to %s", v.Digest(), k.Transcript, k.Contributions, k.Shape)
	}
	p, err := circuit.NewProver(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	w := proof.Weights{Shape: small, A: proof.Fixed{Values: []int16{1, -2, 3}}, B: proof.Fixed{Values: []int16{-4, 5}}}
	st := proof.Statement{Base: canon.Sum("a"), Adapter: canon.Sum("b"), Module: "x", Factor: math.Float64bits(1),
		Tokens: []uint32{1}}
	if err := st.Apply(w, proof.Fixed{Values: []int16{7, 8, -9}}); err != nil {
		t.Fatal(err)
	}
	made, err := p.Prove(st, w, circuit.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(made); err != nil {
		t.Error(err)
	}
	if err := s.Seal(t.Context(), "third"); !errors.Is(err, ErrPhase) {
		t.Errorf("a third phase: %v", err)
	}
	if _, err := s.Contribute(t.Context()); !errors.Is(err, ErrPhase) {
		t.Errorf("a contribution to sealed phases: %v", err)
	}
	if _, err := Start(dir, small, nil); !errors.Is(err, ErrPhase) {
		t.Errorf("a second setup in the folder: %v", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A setup for openings is that of another circuit, and its keys prove and verify openings alone.
func TestKeysOfOpenings(t *testing.T) {
	for _, n := range []int{0, -1, opening.MaxLeaves + 1} {
		if _, err := StartOpening(t.TempDir(), n, nil); !errors.Is(err, opening.ErrLeaves) {
			t.Errorf("%d leaves: %v", n, err)
		}
	}
	if !*long {
		t.Skip("a setup for openings needs -long")
	}
	dir := t.TempDir()
	if _, err := StartOpening(dir, 1, nil); err != nil {
		t.Fatal(err)
	}
	for _, beacon := range []string{"first", "second"} {
		if _, err := opened(t, dir).Contribute(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := opened(t, dir).Seal(t.Context(), beacon); err != nil {
			t.Fatal(err)
		}
	}
	d, err := opened(t, dir).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, pk, err := OpeningKeys(dir)
	if err != nil || v.Digest() != d || v.Key().Contributions != 1 || v.Leaves() != 1 {
		t.Fatalf("%v, %+v", err, v)
	}
	o, err := circuit.NewOpener(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	key, err := opening.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Open(key, []uint64{5}); err != nil {
		t.Error(err)
	}
	if _, _, err := Keys(dir); !errors.Is(err, proof.ErrKey) {
		t.Errorf("as the keys of adapters: %v", err)
	}
}

// A phase needs a contribution, and keys need both phases.
func TestPhasesFollowEachOther(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(dir, small, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Seal(t.Context(), "beacon"); !errors.Is(err, ErrPhase) {
		t.Errorf("a phase without contributions: %v", err)
	}
	if _, err := s.Check(t.Context()); !errors.Is(err, ErrPhase) {
		t.Errorf("keys before the phases: %v", err)
	}
	if _, err := Open(t.TempDir(), nil); err == nil {
		t.Error("a folder without a setup")
	}
	for _, text := range []string{"", "{}", `{"format":2}`, `{"format":1,"rank":1,"in":2,"out":2,"more":1}`,
		`{"format":1,"rank":-1,"in":2,"out":2}`, `{"format":1,"rank":1,"in":2,"out":2,"phases":[{"beacon":"x"}]}`} {
		if err := new(Setup).parse([]byte(text)); err == nil {
			t.Errorf("%q is a setup", text)
		}
	}
}

// A contribution that was changed, exchanged or left out makes other keys, and the check says so.
func TestTranscriptsAreChecked(t *testing.T) {
	dir := contributed(t)
	name := func(phase, i int) string { return filepath.Join(dir, contribution(phase, i)) }
	for what, change := range map[string]func(t *testing.T, s *Setup, set func(phase, i int, data []byte)){
		"another file": func(t *testing.T, s *Setup, set func(int, int, []byte)) {
			set(0, 1, read(t, name(0, 0)))
		},
		"another file of another phase": func(t *testing.T, s *Setup, set func(int, int, []byte)) {
			set(1, 0, read(t, name(0, 0)))
		},
		"a shorter file": func(t *testing.T, s *Setup, set func(int, int, []byte)) {
			set(1, 1, read(t, name(1, 1))[:100])
		},
		"an exchanged point": func(t *testing.T, s *Setup, set func(int, int, []byte)) {
			data := read(t, name(1, 1))
			copy(data[len(data)-64:], read(t, name(1, 0))[len(data)-64:])
			set(1, 1, data)
		},
		"another beacon": func(t *testing.T, s *Setup, _ func(int, int, []byte)) { s.Phases[0].Beacon = "chosen" },
		"one left out": func(t *testing.T, s *Setup, _ func(int, int, []byte)) {
			s.Phases[1].Contributions = s.Phases[1].Contributions[:1]
		},
	} {
		s, before := opened(t, dir), map[string][]byte{}
		change(t, s, func(phase, i int, data []byte) {
			before[name(phase, i)] = read(t, name(phase, i))
			if err := os.WriteFile(name(phase, i), data, 0o600); err != nil {
				t.Fatal(err)
			}
			s.Phases[phase].Contributions[i], _ = digestOf(name(phase, i))
		})
		if _, err := s.Check(t.Context()); !errors.Is(err, ErrFalse) {
			t.Errorf("%s: %v", what, err)
		}
		for file, data := range before {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A proving key that is not that of the contributions is found: a party that passes the folder on could put one there
// that tells it about the weights of proofs.
func TestProvingKeysAreChecked(t *testing.T) {
	dir := contributed(t)
	name := filepath.Join(dir, FileProving)
	whole := read(t, name)
	for what, data := range map[string][]byte{"cut": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0),
		"of another setup": read(t, filepath.Join(contributed(t), FileProving))} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := opened(t, dir).Check(t.Context()); !errors.Is(err, ErrFalse) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(t, dir).Check(t.Context()); err != nil {
		t.Errorf("a folder of a party that makes no proofs: %v", err)
	}
}

// A contribution that says that it has many points is refused before memory is taken for them, whatever byte of it is
// another.
func FuzzForm(f *testing.F) {
	s := &Setup{Rank: int(small.Rank), In: int(small.In), Out: int(small.Out)}
	r, size, err := s.constraints()
	if err != nil {
		f.Fatal(err)
	}
	first := mpcsetup.NewPhase1(size)
	var forms [2]bytes.Buffer
	if _, err := first.WriteTo(&forms[0]); err != nil {
		f.Fatal(err)
	}
	commons := first.Seal([]byte("x"))
	second := new(mpcsetup.Phase2)
	second.Initialize(r, &commons)
	if _, err := second.WriteTo(&forms[1]); err != nil {
		f.Fatal(err)
	}
	for phase := range forms {
		whole := forms[phase].Bytes()
		if err := sameForm(phase, whole, whole); err != nil {
			f.Fatal(err)
		}
		step := 62 // points have 32 and 64 bytes
		if *long {
			step = 2
		}
		for at := 0; at+4 <= len(whole); at += step {
			data := bytes.Clone(whole)
			binary.BigEndian.PutUint32(data[at:], math.MaxUint32)
			f.Add(phase == 1, data)
			binary.BigEndian.PutUint32(data[at:], 0)
			f.Add(phase == 1, bytes.Clone(data))
		}
	}
	f.Fuzz(func(_ *testing.T, last bool, data []byte) {
		if !last && sameForm(0, forms[0].Bytes(), data) == nil {
			_, _ = new(mpcsetup.Phase1).ReadFrom(bytes.NewReader(data))
		}
		if last && sameForm(1, forms[1].Bytes(), data) == nil {
			_, _ = new(mpcsetup.Phase2).ReadFrom(bytes.NewReader(data))
		}
	})
}
