// Package checked is the side of the holder of receipts of answers of hosted models: it executes their checking program
// and finds the first wrong token. Its signer signs them.
//
// It asks no network. Disputes about a receipt are chain/referee/answered.
package checked

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/protocol/answer"
)

// ErrOther is for a receipt that is not about this model, or names another program than checks its answers.
var ErrOther = errors.New("the receipt is of another model")

// Model is a model whose answers can be checked.
type Model struct {
	*pretrained.Model
	Weights canon.Digest   // root
	Roots   []canon.Digest // of the tensors, in the order of the program

	mu       sync.Mutex
	programs map[int]*program.Program // by length
}

// New returns the checkable form of a model. The error wraps check.ErrModel.
func New(m *pretrained.Model) (*Model, error) {
	root, roots, err := check.Weights(m.Config, m.Tensors)
	if err != nil {
		return nil, err
	}
	return &Model{Model: m, Weights: root, Roots: roots, programs: map[int]*program.Program{}}, nil
}

// Adapted is the checkable form of the model with the adapter in a folder, as PEFT writes it. The error wraps
// check.ErrModel, or is one of folder.ReadAdapter.
func (m *Model) Adapted(dir string) (*Model, error) {
	a, err := folder.ReadAdapter(os.DirFS(dir), m.Config)
	if err != nil {
		return nil, err
	}
	root, roots, err := check.Adapted(a.Config, m.Roots, a.Tensors)
	if err != nil {
		return nil, err
	}
	with := *m.Model
	with.Config, with.Tensors = a.Config, maps.Clone(m.Tensors)
	maps.Copy(with.Tensors, a.Tensors)
	return &Model{Model: &with, Weights: root, Roots: roots, programs: map[int]*program.Program{}}, nil
}

// Signs is the form of a model in which its answers are signed, and which needs no tensors.
func (m *Model) Signs() *Model {
	with := *m.Model
	with.Tensors = nil
	return NewFront(&with, m.Weights, m.Roots)
}

// NewFront returns the form of a model in stages in which its answers are signed: of the tensors there are only roots,
// so that Check is for others.
func NewFront(m *pretrained.Model, root canon.Digest, roots []canon.Digest) *Model {
	return &Model{Model: m, Weights: root, Roots: roots, programs: map[int]*program.Program{}}
}

// Program is the checking program for texts of a length.
func (m *Model) Program(length int) (*program.Program, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.programs[length]; p != nil {
		return p, nil
	}
	p, err := check.Program(m.Config, length, m.Tokenizer.VocabSize(), m.Ends)
	if err == nil {
		m.programs[length] = p
	}
	return p, err
}

// ReadReceipt reads a line of a file of receipts: a JSON object whose key receipt has the bytes of answer.Signed, in
// base64. Anybody may have written it.
func ReadReceipt(line []byte) (answer.Signed, error) {
	var held struct {
		Receipt []byte `json:"receipt"`
	}
	if err := json.Unmarshal(line, &held); err != nil {
		return answer.Signed{}, fmt.Errorf("%w: %w", answer.ErrReceipt, err)
	}
	return answer.Decode(held.Receipt)
}

// Verify checks the signature of a receipt, and that it is about this model and names the program that checks its
// answers. The error wraps answer.ErrReceipt, answer.ErrForged or ErrOther.
func (m *Model) Verify(s answer.Signed) error {
	if err := s.Verify(wallet.Verify); err != nil {
		return err
	}
	r := s.Receipt
	if r.Weights != m.Weights {
		return fmt.Errorf("%w: of weights with root %s, these have %s", ErrOther, r.Weights.Short(), m.Weights.Short())
	}
	p, err := m.Program(r.Length())
	if err != nil {
		return err
	}
	if d := p.Digest(); r.Program != d {
		return fmt.Errorf("%w: it names program %s, answers are checked by %s", ErrOther, r.Program.Short(), d.Short())
	}
	return nil
}

// Check executes the checking program of a receipt that Verify accepts on a number of threads. It returns the first
// token of the answer that the model does not give, or -1.
func (m *Model) Check(r answer.Receipt, threads int) (int, error) {
	p, err := m.Program(r.Length())
	if err != nil {
		return 0, err
	}
	exec, err := cpu.Compile(p, threads)
	if err != nil {
		return 0, err
	}
	in := map[string]*tensor.Tensor{}
	for name, t := range m.Tensors {
		in[train.Param+name] = t
	}
	for from := 0; from < len(r.Answer); from += answer.Window {
		for name, t := range answered.Answer(r, uint32(from)).Inputs(r.Length()) {
			in[name] = t
		}
		out, err := exec.Run(in)
		if err != nil {
			return 0, err
		}
		if i := int(out[given.Wrong].I32()[0]); i < given.Rows(r.Length()) {
			return from + i, nil
		}
	}
	return -1, nil
}
