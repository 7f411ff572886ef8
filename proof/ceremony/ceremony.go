// Package ceremony makes the keys of a circuit by a setup to which many parties contribute (Bowe, Gabizon and Miers
// 2017, eprint 2017/1050, as gnark has it). Each contribution multiplies secrets that no party knows as a whole into
// those before it. If one contributor forgets its secrets, no party can forge proofs; if all keep them, together they
// can. The setup is a folder that travels from one contributor to the next, and whose files are the transcript.
//
// A setup has two phases. Both are begun, contributed to and sealed in the same way: the second is about one circuit,
// that of adapters of one shape, of openings of a number of leaves, of networks, or of sums of updates.
package ceremony

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	"github.com/consensys/gnark/backend/groth16/bn254/mpcsetup"
	cs "github.com/consensys/gnark/constraint/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/inference"
	"github.com/starling-network/starling/proof/opening"
)

// Errors of setups.
var (
	ErrSetup = errors.New("ceremony: not a setup")
	ErrPhase = errors.New("ceremony: the setup is in another phase")
	ErrFalse = errors.New("ceremony: the transcript does not hold")
)

// Names of the files of a setup.
const (
	fileSetup     = "setup.json"
	FileProving   = "proving.key"
	FileVerifying = "verifying.key"

	maxSetup = 1 << 20 // bytes of setup.json
	// MaxContributions bounds those of a phase.
	MaxContributions = 1000
)

// Setup is the state of a setup, as setup.json has it.
type Setup struct {
	Format int `json:"format"`
	Rank   int `json:"rank"`
	In     int `json:"in"`
	Out    int `json:"out"`
	// for others than adapters the shape is zero, and there is one of these
	Leaves  int      `json:"leaves,omitempty"` // of openings
	Widths  []uint32 `json:"widths,omitempty"` // of networks
	Updates int      `json:"updates,omitempty"`
	Length  int      `json:"length,omitempty"` // of each of the updates

	Phases [2]Phase `json:"phases"`

	dir string
	say func(string)
}

// Phase is the state of a phase.
type Phase struct {
	Contributions []canon.Digest `json:"contributions"`    // of the files, in order
	Beacon        string         `json:"beacon,omitempty"` // that sealed it; "": it is open
}

const format = 1

// Phase is the phase that is open: 0 or 1; 2: the keys are made.
func (s *Setup) Phase() int {
	for i, p := range s.Phases {
		if p.Beacon == "" {
			return i
		}
	}
	return len(s.Phases)
}

// Contributions is the least number of contributions to a phase.
func (s *Setup) Contributions() int {
	return min(len(s.Phases[0].Contributions), len(s.Phases[1].Contributions))
}

// Start begins a setup for adapters in a folder that has none.
func Start(dir string, shape proof.Shape, say func(string)) (*Setup, error) {
	return start(&Setup{Format: format, Rank: int(shape.Rank), In: int(shape.In), Out: int(shape.Out), dir: dir, say: say})
}

// StartOpening begins a setup for openings of a number of leaves in a folder that has none.
func StartOpening(dir string, leaves int, say func(string)) (*Setup, error) {
	if err := opening.CheckLeaves(leaves); err != nil {
		return nil, err
	}
	return start(&Setup{Format: format, Leaves: leaves, dir: dir, say: say})
}

// StartInference begins a setup for networks in a folder that has none.
func StartInference(dir string, shape inference.Shape, say func(string)) (*Setup, error) {
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	return start(&Setup{Format: format, Widths: shape.Widths, dir: dir, say: say})
}

// StartAggregation begins a setup for sums in a folder that has none.
func StartAggregation(dir string, shape aggregation.Shape, say func(string)) (*Setup, error) {
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	return start(&Setup{Format: format, Updates: int(shape.Updates), Length: int(shape.Length), dir: dir, say: say})
}

func start(s *Setup) (*Setup, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	dir := s.dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(s.file(fileSetup)); err == nil {
		return nil, fmt.Errorf("%w: %s has one already", ErrPhase, dir)
	}
	return s, s.save()
}

// Open reads the setup of a folder. say gets what is done; it may be nil.
func Open(dir string, say func(string)) (*Setup, error) {
	s := &Setup{dir: dir, say: say}
	text, err := readLimited(s.file(fileSetup), maxSetup)
	if err != nil {
		return nil, err
	}
	return s, s.parse(text)
}

func (s *Setup) parse(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	if s.Format != format {
		return fmt.Errorf("%w: format %d, wanted %d", ErrSetup, s.Format, format)
	}
	if s.Rank < 0 || s.In < 0 || s.Out < 0 || s.Rank > proof.MaxRank || s.In > proof.MaxWidth || s.Out > proof.MaxWidth ||
		s.Updates < 0 || s.Length < 0 || s.Updates > aggregation.MaxUpdates || s.Length > aggregation.MaxElements {
		return fmt.Errorf("%w: rank %d, %d to %d", ErrSetup, s.Rank, s.In, s.Out)
	}
	for i, p := range s.Phases {
		if len(p.Contributions) > MaxContributions || len(p.Beacon) > maxBeacon ||
			p.Beacon != "" && len(p.Contributions) == 0 ||
			i > 0 && s.Phases[i-1].Beacon == "" && len(p.Contributions) > 0 {
			return fmt.Errorf("%w: phase %d has %d contributions", ErrSetup, i+1, len(p.Contributions))
		}
	}
	return s.validate()
}

// maxBeacon bounds a beacon, in bytes.
const maxBeacon = 1000

func (s *Setup) file(name string) string { return filepath.Join(s.dir, name) }

func (s *Setup) save() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replace(s.file(fileSetup), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

func (s *Setup) tell(format string, args ...any) {
	if s.say != nil {
		s.say(fmt.Sprintf(format, args...))
	}
}

// contribution is the name of the file of a contribution.
func contribution(phase, i int) string { return fmt.Sprintf("phase%d.%04d", phase+1, i+1) }

// Contribute adds a contribution to the open phase, with randomness of the system, and returns its digest. It checks
// the contributions before it first.
func (s *Setup) Contribute(ctx context.Context) (canon.Digest, error) {
	phase := s.Phase()
	if phase == len(s.Phases) {
		return canon.Digest{}, fmt.Errorf("%w: both phases are sealed", ErrPhase)
	}
	if len(s.Phases[phase].Contributions) == MaxContributions {
		return canon.Digest{}, fmt.Errorf("%w: it has %d contributions", ErrPhase, MaxContributions)
	}
	made, err := s.next(ctx, phase)
	if err != nil {
		return canon.Digest{}, err
	}
	name := s.file(contribution(phase, len(s.Phases[phase].Contributions)))
	if err := replace(name, func(w io.Writer) error { _, err := made.WriteTo(w); return err }); err != nil {
		return canon.Digest{}, err
	}
	d, err := digestOf(name)
	if err != nil {
		return d, err
	}
	s.Phases[phase].Contributions = append(s.Phases[phase].Contributions, d)
	return d, s.save()
}

// next computes the next contribution to a phase.
func (s *Setup) next(ctx context.Context, phase int) (io.WriterTo, error) {
	r, size, err := s.constraints()
	if err != nil {
		return nil, err
	}
	if phase == 0 {
		last, err := s.first(ctx, size)
		if err != nil {
			return nil, err
		}
		s.tell("contributes to %d powers", size)
		last.Contribute()
		return last, nil
	}
	commons, err := s.sealedFirst(ctx, size)
	if err != nil {
		return nil, err
	}
	last, _, err := s.second(ctx, r, commons)
	if err != nil {
		return nil, err
	}
	s.tell("contributes to the circuit")
	last.Contribute()
	return last, nil
}

// first checks the contributions to the first phase, and returns the last.
func (s *Setup) first(ctx context.Context, size uint64) (*mpcsetup.Phase1, error) {
	last := mpcsetup.NewPhase1(size)
	for i := range s.Phases[0].Contributions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.tell("checks contribution %d of %d to the powers", i+1, len(s.Phases[0].Contributions))
		next := mpcsetup.NewPhase1(size)
		if err := s.read(0, i, last, next); err != nil {
			return nil, err
		}
		if err := last.Verify(next); err != nil {
			return nil, fmt.Errorf("%w: contribution %d to phase 1: %w", ErrFalse, i+1, err)
		}
		last = next
	}
	return last, nil
}

// sealedFirst is the result of the first phase.
func (s *Setup) sealedFirst(ctx context.Context, size uint64) (*mpcsetup.SrsCommons, error) {
	last, err := s.first(ctx, size)
	if err != nil {
		return nil, err
	}
	s.tell("seals the powers")
	commons := last.Seal([]byte(s.Phases[0].Beacon))
	return &commons, nil
}

// second checks the contributions to the second phase, and returns the last.
func (s *Setup) second(ctx context.Context, r *cs.R1CS, commons *mpcsetup.SrsCommons) (*mpcsetup.Phase2,
	*mpcsetup.Phase2Evaluations, error) {
	s.tell("evaluates the circuit at the powers")
	last := new(mpcsetup.Phase2)
	evaluations := last.Initialize(r, commons)
	for i := range s.Phases[1].Contributions {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		s.tell("checks contribution %d of %d to the circuit", i+1, len(s.Phases[1].Contributions))
		next := new(mpcsetup.Phase2)
		if err := s.read(1, i, last, next); err != nil {
			return nil, nil, err
		}
		if err := last.Verify(next); err != nil {
			return nil, nil, fmt.Errorf("%w: contribution %d to phase 2: %w", ErrFalse, i+1, err)
		}
		last = next
	}
	return last, &evaluations, nil
}

// Seal ends the open phase with a beacon: bytes that no contributor could foresee, such as the beacon of a network at a
// height that was agreed on before. After the second phase it writes the keys.
func (s *Setup) Seal(ctx context.Context, beacon string) error {
	phase := s.Phase()
	switch {
	case phase == len(s.Phases):
		return fmt.Errorf("%w: both phases are sealed", ErrPhase)
	case len(s.Phases[phase].Contributions) == 0:
		return fmt.Errorf("%w: phase %d has no contribution", ErrPhase, phase+1)
	case beacon == "" || len(beacon) > maxBeacon:
		return fmt.Errorf("%w: a beacon of %d bytes, wanted 1 to %d", ErrSetup, len(beacon), maxBeacon)
	}
	s.Phases[phase].Beacon = beacon
	if phase == 0 {
		if _, size, err := s.constraints(); err != nil {
			return err
		} else if _, err := s.first(ctx, size); err != nil {
			return err
		}
		return s.save()
	}
	pk, vk, err := s.keys(ctx)
	if err != nil {
		return err
	}
	if err := replace(s.file(FileProving), func(w io.Writer) error { return writeProving(w, pk) }); err != nil {
		return err
	}
	if err := replace(s.file(FileVerifying), func(w io.Writer) error { _, err := w.Write(vk); return err }); err != nil {
		return err
	}
	return s.save()
}

// keys computes the keys from the contributions, which it checks.
func (s *Setup) keys(ctx context.Context) (*groth16.ProvingKey, []byte, error) {
	r, size, err := s.constraints()
	if err != nil {
		return nil, nil, err
	}
	commons, err := s.sealedFirst(ctx, size)
	if err != nil {
		return nil, nil, err
	}
	last, evaluations, err := s.second(ctx, r, commons)
	if err != nil {
		return nil, nil, err
	}
	s.tell("makes the keys")
	pk, vk := last.Seal(commons, evaluations, []byte(s.Phases[1].Beacon))
	made, err := s.verifyingKey(vk.(*groth16.VerifyingKey))
	return pk.(*groth16.ProvingKey), made, err
}

// Transcript names the contributions and the beacons.
func (s *Setup) Transcript() canon.Digest {
	var parts [][]byte
	for _, p := range s.Phases {
		for _, d := range p.Contributions {
			parts = append(parts, d[:])
		}
		parts = append(parts, []byte(p.Beacon))
	}
	return canon.Sum("starling/proof/setup/1", parts...)
}

// Check computes the keys of a setup again, and compares them with those of the folder, which may be without the
// proving key.
func (s *Setup) Check(ctx context.Context) (canon.Digest, error) {
	if s.Phase() < len(s.Phases) {
		return canon.Digest{}, fmt.Errorf("%w: phase %d is open, and there are no keys", ErrPhase, s.Phase()+1)
	}
	pk, vk, err := s.keys(ctx)
	if err != nil {
		return canon.Digest{}, err
	}
	made := sha256.New()
	if err := writeProving(made, pk); err != nil {
		return canon.Digest{}, err
	}
	d, err := digestOf(s.file(FileProving))
	switch {
	case errors.Is(err, fs.ErrNotExist): // a party that makes no proofs needs none
	case err != nil:
		return canon.Digest{}, err
	case d != canon.Digest(made.Sum(nil)):
		return canon.Digest{}, fmt.Errorf("%w: %s is not the key of the contributions", ErrFalse, FileProving)
	}
	have, err := readLimited(s.file(FileVerifying), proof.MaxKey)
	if err != nil {
		return canon.Digest{}, err
	}
	if !bytes.Equal(vk, have) {
		return canon.Digest{}, fmt.Errorf("%w: %s is not the key of the contributions", ErrFalse, FileVerifying)
	}
	return s.keyDigest(vk), nil
}
