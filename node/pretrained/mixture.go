package pretrained

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/starling-network/starling/compute/generate"
)

// MixtureFile is the file that makes a folder a mixture: a list of the folders of its experts.
const MixtureFile = "mixture.json"

// Limits of a mixture.
const (
	MaxExperts     = 16
	maxMixtureFile = 1 << 16 // bytes
)

// Listed is an expert in a MixtureFile.
type Listed struct {
	Name  string  `json:"name"`
	Path  string  `json:"path"`  // of its folder, relative to that of the file, in which it lies
	Prior float64 `json:"prior"` // the probability that a text is of its domain, before any of it is read
}

// mixtureFile is the content of a MixtureFile.
type mixtureFile struct {
	Format  string   `json:"format"`
	Experts []Listed `json:"experts"`
}

const mixtureFormat = "starling-mixture-1"

// ParseMixture reads a MixtureFile, whose author is not trusted. The error wraps ErrModel.
func ParseMixture(text []byte) ([]Listed, error) {
	var m mixtureFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if len(text) > maxMixtureFile {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are read", ErrModel, MixtureFile, len(text), maxMixtureFile)
	}
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, MixtureFile, err)
	}
	if m.Format != mixtureFormat {
		return nil, fmt.Errorf("%w: %s has the format %.40q, this version reads %s", ErrModel, MixtureFile, m.Format,
			mixtureFormat)
	}
	return m.Experts, checkListed(m.Experts)
}

// checkListed reports a list that is not one of experts.
func checkListed(all []Listed) error {
	if len(all) < 2 || len(all) > MaxExperts {
		return fmt.Errorf("%w: a mixture of %d experts, wanted 2 to %d", ErrModel, len(all), MaxExperts)
	}
	names := map[string]bool{}
	for _, e := range all {
		switch {
		case e.Name == "" || len(e.Name) > 100 || names[e.Name]:
			return fmt.Errorf("%w: %s: the name of an expert is %.100q, wanted another for each", ErrModel, MixtureFile, e.Name)
		case !filepath.IsLocal(e.Path) || filepath.Clean(e.Path) == ".":
			return fmt.Errorf("%w: %s: expert %s lies in %.100q, wanted a folder in that of the file", ErrModel, MixtureFile,
				e.Name, e.Path)
		case !(e.Prior > 0 && e.Prior <= 1):
			return fmt.Errorf("%w: %s: the prior of expert %s is %v, wanted more than 0, at most 1", ErrModel, MixtureFile,
				e.Name, e.Prior)
		}
		names[e.Name] = true
	}
	return nil
}

// ReadMixture lists the experts of the mixture in a folder; none if it is no mixture. The error wraps ErrModel.
func ReadMixture(dir string) ([]Listed, error) {
	text, err := os.ReadFile(filepath.Join(dir, MixtureFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // a file has none
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return ParseMixture(text)
}

// WriteMixture makes a folder, in which the models of the experts lie, a mixture of them.
func WriteMixture(dir string, all []Listed) error {
	if err := checkListed(all); err != nil {
		return err
	}
	text, err := json.MarshalIndent(mixtureFile{mixtureFormat, all}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, MixtureFile), append(text, '\n'), 0o644)
}

// Expert is one of the models of a folder.
type Expert struct {
	*Model
	Name  string
	Path  string // of its folder, relative to that of the mixture
	Prior float64
}

// Mixture is what a folder holds: one model without a name, or the experts that read texts together
// (generate.Mixture).
type Mixture []Expert

// Open reads the folder of a model, or of a mixture, whose experts have one tokenizer. The error wraps ErrModel.
func Open(dir string) (Mixture, error) {
	list, err := ReadMixture(dir)
	if err != nil {
		return nil, err
	}
	if list == nil {
		m, err := Load(dir)
		if err != nil {
			return nil, err
		}
		return Mixture{{Model: m, Prior: 1}}, nil
	}
	var all Mixture
	var first []byte
	for i, l := range list {
		at := filepath.Join(dir, l.Path)
		m, err := Load(at)
		if err != nil {
			return nil, fmt.Errorf("expert %s: %w", l.Name, err)
		}
		tok, err := os.ReadFile(filepath.Join(at, tokenizerFile))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrModel, err)
		}
		all = append(all, Expert{m, l.Name, l.Path, l.Prior})
		if i == 0 {
			first = tok
		}
		if !bytes.Equal(tok, first) || m.Config.VocabSize() != all[0].Config.VocabSize() {
			return nil, fmt.Errorf("%w: experts %s and %s have different tokenizers", ErrModel, list[0].Name, l.Name)
		}
	}
	return all, nil
}

// Context is the number of tokens that a text may have.
func (m Mixture) Context() int {
	n := m[0].Config.Context()
	for _, e := range m {
		n = min(n, e.Config.Context())
	}
	return n
}

// Parameters is the number of parameters of all models.
func (m Mixture) Parameters() (n int) {
	for _, e := range m {
		n += e.Config.Parameters()
	}
	return n
}

// Ignored lists the keys of the files config.json that mean nothing to the models.
func (m Mixture) Ignored() (keys []string) {
	for _, e := range m {
		for _, k := range e.Model.Ignored {
			if e.Name != "" {
				k = e.Name + ": " + k
			}
			keys = append(keys, k)
		}
	}
	return keys
}

// Reads is the model that continues texts, on up to a number of threads, with adapters if it is no mixture. The error
// wraps ErrModel.
func (m Mixture) Reads(threads int, adapters ...generate.Adapter) (generate.Model, error) {
	var batches []*generate.Batch
	var priors []float64
	for _, e := range m {
		b := generate.NewBatch(e.Config, threads)
		if err := b.SetWeights(e.Tensors, adapters...); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrModel, err)
		}
		batches, priors = append(batches, b), append(priors, e.Prior)
	}
	if len(m) == 1 {
		return batches[0], nil
	}
	if len(adapters) > 0 {
		return nil, fmt.Errorf("%w: a mixture has no adapters", ErrModel)
	}
	all, err := generate.NewMixture(batches, priors)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return all, nil
}
