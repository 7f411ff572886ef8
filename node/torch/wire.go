package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// protocol is the version that both sides must have.
const protocol = 2

// Limits of a message, in bytes.
const (
	maxRequest = 1 << 30
	maxReply   = 1 << 16
)

// request is what the child is asked. Which fields there are follows from the type.
type request struct {
	Type    string        `json:"type"`
	Version int           `json:"version,omitempty"` // of hello
	Device  string        `json:"device,omitempty"`
	Threads int           `json:"threads,omitempty"`
	Module  string        `json:"module"`
	Program *operatorList `json:"program,omitempty"` // of open
	Dice    []int64       `json:"dice,omitempty"`    // of step: the key of its random numbers, if it draws any
	LR      *float32      `json:"lr,omitempty"`
	C1      *float32      `json:"c1,omitempty"`
	C2      *float32      `json:"c2,omitempty"`
	layout                // of open
}

// layout says where tensors are in the memory that is shared.
type layout struct {
	Bytes  int64   `json:"bytes,omitempty"`
	State  []place `json:"state,omitempty"`  // in the order of train.Session.Tensors
	Frozen []place `json:"frozen,omitempty"` // in the order of train.Frozen
	Tokens *place  `json:"tokens,omitempty"` // int32 [batch, length+1]

	Grades []graded `json:"grades,omitempty"` // in the order of the operators
}

// place is where a tensor lies: its elements from Offset on, little-endian and row-major.
type place struct {
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Dims   []int  `json:"dims"`
	Offset int64  `json:"offset"`
}

// alignment of a tensor, in bytes.
const alignment = 64

func (l *layout) add(name string, s tensor.Shape) place {
	p := place{name, s.DType.String(), append([]int{}, s.Dims...), l.Bytes}
	l.Bytes += int64(s.Bytes()+alignment-1) / alignment * alignment
	return p
}

// layoutOf lays out what a task shares.
func layoutOf(t *train.Task) layout {
	var l layout
	shapes := t.Step.InputShapes()
	for _, n := range train.StateNames(t.Step) {
		l.State = append(l.State, l.add(n, shapes[n]))
	}
	for _, n := range train.Frozen(t.Step) {
		l.Frozen = append(l.Frozen, l.add(train.Param+n, shapes[train.Param+n]))
	}
	tokens := l.add("tokens", shapes["tokens"])
	l.Tokens = &tokens
	l.addGrades(t.Step)
	return l
}

// operatorList is a program as the child reads it.
type operatorList struct {
	Ops     []operator `json:"ops"`
	Outputs []output   `json:"outputs"`
}

type operator struct {
	Kind  string  `json:"kind"`
	In    []int32 `json:"in"`
	DType string  `json:"dtype"`
	Dims  []int   `json:"dims"`
	Ints  []int64 `json:"ints"`
	Data  []byte  `json:"data"` // base64
	Name  string  `json:"name"`
}

type output struct {
	Name  string `json:"name"`
	Value int32  `json:"value"`
}

func programOf(p *program.Program) *operatorList {
	l := &operatorList{}
	for _, op := range p.Ops {
		l.Ops = append(l.Ops, operator{
			op.Kind.String(), append([]int32{}, op.In...), op.Out.DType.String(), append([]int{}, op.Out.Dims...),
			append([]int64{}, op.Ints...), op.Data, op.Name,
		})
	}
	for _, o := range p.Outputs {
		l.Outputs = append(l.Outputs, output{o.Name, o.Value})
	}
	return l
}

// reply is what the child answers.
type reply struct {
	Type    string   `json:"type"`
	Version int      `json:"version"` // of ready
	Torch   string   `json:"torch"`
	Device  string   `json:"device"`
	Loss    *float64 `json:"loss"` // of stepped; null: no number
	Op      int      `json:"op"`   // of grade: the number of an operator
	Code    string   `json:"code"` // of error
	Message string   `json:"message"`
}

// loss is the loss of a step; NaN if it is no number, or none that a float32 holds.
func (r reply) loss() float32 {
	if r.Loss == nil {
		return float32(math.NaN())
	}
	return float32(*r.Loss)
}

// errReply is wrapped by every reason why bytes of a child are no reply.
var errReply = errors.New("not a reply")

// replyOf reads a reply, a JSON object. Strangers' jobs and the owner's module have a say in what the child writes:
// nothing of it is taken that is not of this form.
func replyOf(body []byte) (reply, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var got reply
	if err := d.Decode(&got); err != nil {
		return reply{}, fmt.Errorf("%w: %w", errReply, err)
	}
	if d.More() || got.Type == "" {
		return reply{}, fmt.Errorf("%w: no object with a type, or more than one", errReply)
	}
	return got, nil
}
