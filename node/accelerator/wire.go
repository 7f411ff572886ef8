package accelerator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
)

// Protocol is the version that both sides must have.
const Protocol = 3

// Limits of a question and of an answer, in bytes.
const (
	MaxQuestion = 1 << 30
	MaxAnswer   = 1 << 20
)

// Kinds of questions. Each has the answer of the same kind, or that of kind Failed.
const (
	Devices = "devices" // which devices there are
	Compare = "compare" // runs a piece of a case of the suite on a device
	Compile = "compile" // compiles a program for a device, and keeps it
	Put     = "put"     // sets inputs from the memory that is shared
	Step    = "step"    // sets inputs, runs the program, and writes outputs to the memory that is shared
	Get     = "get"     // writes outputs there
	Failed  = "failed"
)

// Question is what the child is asked. Which fields there are follows from the kind.
type Question struct {
	Kind     string `json:"kind"`
	Version  int    `json:"version"`
	Device   int    `json:"device,omitempty"`   // its place in the list
	Elements int    `json:"elements,omitempty"` // of Compare: see suite.New
	Case     int    `json:"case,omitempty"`     // of Compare
	Piece    int    `json:"piece,omitempty"`    // of Compare

	Program []byte   `json:"program,omitempty"` // of Compile, in canonical bytes
	Carried []string `json:"carried,omitempty"` // outputs that are inputs of the next run
	Put     []string `json:"put,omitempty"`     // inputs
	Get     []string `json:"get,omitempty"`     // outputs
	Times   int      `json:"times,omitempty"`   // of Step: runs of the program; 0 is 1
}

// Answer is what the child answers.
type Answer struct {
	Kind    string                `json:"kind"`
	Code    string                `json:"code,omitempty"` // of Failed
	Why     string                `json:"why,omitempty"`
	Devices []device.Capabilities `json:"devices,omitempty"`
	Report  *suite.Report         `json:"report,omitempty"`
	Cases   int                   `json:"cases,omitempty"` // of Compare: how many there are
}

// errAnswer is wrapped by every reason why bytes of a child are no answer.
var errAnswer = errors.New("not an answer")

// answerOf reads an answer: one JSON object of known fields. Drivers of others have a say in what the child writes.
func answerOf(body []byte) (Answer, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var got Answer
	if err := d.Decode(&got); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", errAnswer, err)
	}
	if d.More() || got.Kind == "" {
		return Answer{}, fmt.Errorf("%w: no object with a kind, or more than one", errAnswer)
	}
	return got, nil
}
