// Package part is the folders of a model in stages: one for each stage, with the tensors of its layers, and one for the
// front, with the tensors outside of the layers and the tokenizer. Each has config.json, which says how large the model
// is, and a manifest, by which its tensors are those of the model.
package part

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/push/published"
)

// Errors of folders of parts.
var (
	ErrPart   = errors.New("not the folder of a part of a model in stages")
	ErrExists = errors.New("the folder is there already")
)

// ManifestFile is the file that makes a folder that of a part.
const ManifestFile = "part.json"

const (
	format      = "starling-part-1"
	maxManifest = 8 << 20 // bytes
)

// Manifest says which part of which model a folder has.
type Manifest struct {
	Format  string         `json:"format"`
	Stages  int            `json:"stages"`
	Stage   int            `json:"stage"`          // 0: the front
	Epoch   uint64         `json:"epoch"`          // of the key of the weights; 0: they have none
	Files   canon.Digest   `json:"files"`          // of the model, as networks know it
	Weights canon.Digest   `json:"weights"`        // root of the whole model
	Roots   []canon.Digest `json:"roots"`          // of all its tensors, in the order of the model
	Left    left.Layers    `json:"left,omitempty"` // that microbatches left out in training
}

// Part is what a folder has.
type Part struct {
	Manifest
	Layout  section.Layout
	Tensors map[string]*tensor.Tensor
}

// Name is that of the folder of a part.
func Name(stage int) string {
	if stage == section.Front {
		return "front"
	}
	return "stage-" + strconv.Itoa(stage)
}

// Is reports whether a folder has a part.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ManifestFile))
	return err == nil
}

// ReadManifest reads the manifest and the layout of a folder. The error wraps ErrPart.
func ReadManifest(dir string) (m Manifest, l section.Layout, err error) {
	f, err := os.Open(filepath.Join(dir, ManifestFile))
	if err != nil {
		return m, l, fmt.Errorf("%w: %w", ErrPart, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	var c architecture.Config
	if err == nil {
		m, err = parse(text)
	}
	if err == nil {
		c, err = folder.ReadConfig(os.DirFS(dir))
	}
	if err == nil {
		l, err = section.Divide(c, m.Stages)
	}
	if err == nil {
		err = m.Left.Check(c.Layers)
	}
	switch {
	case err != nil:
	case m.Stage > m.Stages:
		err = fmt.Errorf("stage %d of %d", m.Stage, m.Stages)
	case len(m.Roots) != len(c.Tensors()) || canon.NewTree(m.Roots).Root() != m.Weights:
		err = fmt.Errorf("the roots of %s are not those of %d tensors of a model with root %s", ManifestFile,
			len(c.Tensors()), m.Weights.Short())
	}
	if err != nil {
		return m, l, fmt.Errorf("%w: %w", ErrPart, err)
	}
	return m, l, nil
}

// parse reads a manifest, whose author is not trusted.
func parse(text []byte) (m Manifest, err error) {
	if len(text) > maxManifest {
		return m, fmt.Errorf("%s has more than %d bytes", ManifestFile, maxManifest)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if m.Format != format || m.Stages < 1 || m.Stage < 0 || len(m.Roots) == 0 {
		return m, fmt.Errorf("%s: stage %d of %d in the format %.40q, this version reads %s", ManifestFile, m.Stage,
			m.Stages, m.Format, format)
	}
	return m, nil
}

// Read reads the folder of a stage, whose tensors are those of the manifest. The error wraps ErrPart.
func Read(dir string) (*Part, error) {
	m, l, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if m.Stage == section.Front {
		return nil, fmt.Errorf("%w: it is the front of the stages: starling model serve and host take it", ErrPart)
	}
	read, err := folder.ReadTensors(os.DirFS(dir), l.Config, l.Tensors(m.Stage))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPart, err)
	}
	p := &Part{Manifest: m, Layout: l, Tensors: read.Tensors}
	return p, p.check()
}

// check compares the tensors with the manifest.
func (p *Part) check() error {
	for i, n := range p.Layout.Config.Tensors() {
		if t := p.Tensors[n.Name]; t != nil && t.Root() != p.Roots[i] {
			return fmt.Errorf("%w: tensor %q is not that of the model", ErrPart, n.Name)
		}
	}
	return nil
}

// ReadFront reads the folder of the front, with its tokenizer. The error wraps ErrPart or pretrained.ErrModel.
func ReadFront(dir string) (*Part, *pretrained.Model, error) {
	m, l, err := ReadManifest(dir)
	if err == nil && m.Stage != section.Front {
		err = fmt.Errorf("%w: it is stage %d, which starling model stage holds", ErrPart, m.Stage)
	}
	if err != nil {
		return nil, nil, err
	}
	read, err := pretrained.LoadPart(dir, func(architecture.Config) []architecture.Named {
		return l.Tensors(section.Front)
	})
	if err != nil {
		return nil, nil, err
	}
	p := &Part{Manifest: m, Layout: l, Tensors: read.Tensors}
	return p, read, p.check()
}

// Write writes the folders of all parts of a model below a folder, which is made. from is the folder of the model,
// whose tokenizer the front gets. Of the manifest, Stages, Epoch and Left are given, and Files of a model without an
// epoch: no folder has the files of all parts of an epoch, whose digest follows from its weights. The error wraps
// ErrExists or section.ErrLayout.
func Write(out, from string, c architecture.Config, tensors map[string]*tensor.Tensor, m Manifest) (Manifest,
	error) {
	l, err := section.Divide(c, m.Stages)
	if err != nil {
		return m, err
	}
	m.Format = format
	if m.Weights, m.Roots, err = check.Weights(c, tensors); err != nil {
		return m, err
	}
	if m.Epoch > 0 {
		m.Files = canon.Sum("starling/epoch/files/1", m.Weights[:])
	}
	if _, err := os.Lstat(out); err == nil {
		return m, fmt.Errorf("%w: %s", ErrExists, out)
	}
	for m.Stage = range m.Stages + 1 {
		if err := writePart(filepath.Join(out, Name(m.Stage)), m, l, tensors); err != nil {
			return m, err
		}
	}
	m.Stage = section.Front
	return m, copyText(filepath.Join(out, Name(section.Front)), from)
}

// writePart writes the folder of one part.
func writePart(dir string, m Manifest, l section.Layout, tensors map[string]*tensor.Tensor) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	var names []string
	for _, n := range l.Tensors(m.Stage) {
		names = append(names, n.Name)
	}
	f, err := os.OpenFile(filepath.Join(dir, "model.safetensors"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = safetensors.EncodeAs(f, names, tensors, nil, map[string]string{"format": "pt"})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"config.json": l.Config.JSON(), ManifestFile: append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ofText are the beginnings of the names of files about text.
var ofText = []string{"tokenizer", "special_tokens", "added_tokens", "vocab", "merges", "chat_template",
	"generation_config"}

// copyText copies the files about text of a model.
func copyText(to, from string) error {
	files, err := published.Files(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !slices.ContainsFunc(ofText, func(begin string) bool { return strings.HasPrefix(f.Name, begin) }) {
			continue
		}
		text, err := os.ReadFile(f.Path)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
