package ceremony

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/inference"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/proof/verifier"
)

// readLimited reads a file of a stranger.
func readLimited(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrSetup, filepath.Base(name), most)
	}
	return data, err
}

// replace writes a file, and puts it in the place of another once it is whole.
func replace(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// digestOf is the digest of a file.
func digestOf(name string) (d canon.Digest, err error) {
	f, err := os.Open(name)
	if err != nil {
		return d, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(d[:0])
	return d, err
}

// stream is a contribution.
type stream interface {
	io.WriterTo
	io.ReaderFrom
}

// read reads contribution i to a phase. Before its points are decoded, which allocates what the file says, it is
// compared with the contribution before it, which has the same form: see sameForm.
func (s *Setup) read(phase, i int, before, into stream) error {
	name := contribution(phase, i)
	reject := func(err error) error { return fmt.Errorf("%w: %s: %w", ErrFalse, name, err) }
	var form bytes.Buffer
	if _, err := before.WriteTo(&form); err != nil {
		return err
	}
	data, err := readLimited(s.file(name), int64(form.Len())+maxChallenge)
	if err != nil {
		return reject(err)
	}
	if d := canon.Digest(sha256.Sum256(data)); d != s.Phases[phase].Contributions[i] {
		return reject(fmt.Errorf("its digest is %s, and that of the transcript %s", d.Short(),
			s.Phases[phase].Contributions[i].Short()))
	}
	if err := sameForm(phase, form.Bytes(), data); err != nil {
		return reject(err)
	}
	n, err := into.ReadFrom(bytes.NewReader(data))
	if err == nil && n != int64(len(data)) {
		err = fmt.Errorf("%d bytes too many", int64(len(data))-n)
	}
	if err != nil {
		return reject(err)
	}
	return nil
}

// Keys reads the keys for adapters of a folder. The proving key is read as it is: one that others made can tell them
// about the weights of its proofs, so Check comes before its first use.
func Keys(dir string) (*proof.Verifier, *groth16.ProvingKey, error) {
	v, err := Verifying(filepath.Join(dir, FileVerifying))
	if err != nil {
		return nil, nil, err
	}
	pk, err := proving(dir)
	return v, pk, err
}

// InferenceKeys reads the keys for networks of a folder, as Keys those for adapters.
func InferenceKeys(dir string) (*inference.Verifier, *groth16.ProvingKey, error) {
	data, err := readLimited(filepath.Join(dir, FileVerifying), inference.MaxKey)
	if err != nil {
		return nil, nil, err
	}
	v, err := inference.NewVerifier(data)
	if err != nil {
		return nil, nil, err
	}
	pk, err := proving(dir)
	return v, pk, err
}

// AggregationKeys reads the keys for sums of a folder, as Keys those for adapters.
func AggregationKeys(dir string) (*aggregation.Verifier, *groth16.ProvingKey, error) {
	data, err := readLimited(filepath.Join(dir, FileVerifying), aggregation.MaxKey)
	if err != nil {
		return nil, nil, err
	}
	v, err := aggregation.NewVerifier(data)
	if err != nil {
		return nil, nil, err
	}
	pk, err := proving(dir)
	return v, pk, err
}

// OpeningKeys reads the keys for openings of a folder, as Keys those for adapters.
func OpeningKeys(dir string) (*opening.Verifier, *groth16.ProvingKey, error) {
	v, err := VerifyingOpenings(filepath.Join(dir, FileVerifying))
	if err != nil {
		return nil, nil, err
	}
	pk, err := proving(dir)
	return v, pk, err
}

func proving(dir string) (*groth16.ProvingKey, error) {
	f, err := os.Open(filepath.Join(dir, FileProving))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pk := new(groth16.ProvingKey)
	if _, err := pk.UnsafeReadFrom(bufio.NewReaderSize(f, 1<<20)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSetup, FileProving, err)
	}
	return pk, nil
}

// writeProving writes a proving key as its file has it.
func writeProving(w io.Writer, pk *groth16.ProvingKey) error {
	b := bufio.NewWriterSize(w, 1<<20)
	_, err := pk.WriteRawTo(b)
	return errors.Join(err, b.Flush())
}

// Verifying reads a verifying key for adapters.
func Verifying(name string) (*proof.Verifier, error) {
	data, err := readLimited(name, proof.MaxKey)
	if err != nil {
		return nil, err
	}
	return proof.NewVerifier(data)
}

// VerifyingOf reads a verifying key of any kind of proof.
func VerifyingOf(name string) (verifier.Key, error) {
	data, err := readLimited(name, verifier.MaxKey)
	if err != nil {
		return verifier.Key{}, err
	}
	return verifier.ReadKey(data)
}

// VerifyingOpenings reads a verifying key for openings.
func VerifyingOpenings(name string) (*opening.Verifier, error) {
	data, err := readLimited(name, opening.MaxKey)
	if err != nil {
		return nil, err
	}
	return opening.NewVerifier(data)
}
