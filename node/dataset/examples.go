package dataset

import (
	"encoding/json"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/data/paired"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/dataset/conversation"
)

// ErrExample is wrapped by every reason why an object is no example of the task.
var ErrExample = conversation.ErrExample

// object is a line of a file of examples.
type object = map[string]json.RawMessage

// examples returns how the objects of a file become documents in the task of its job; nil: as its field says.
func (f File) examples() func(object) ([]source.Document, error) {
	if f.task == spec.TaskEmbed {
		return func(o object) ([]source.Document, error) {
			p, err := paired.Of(o, f.Field, f.second)
			return []source.Document{{Text: p.Anchor}, {Text: p.Positive}}, err
		}
	}
	if f.second != "" {
		return func(o object) ([]source.Document, error) {
			x, err := labelled.Of(o, f.Field, f.second)
			return []source.Document{{Text: x.Text}}, err
		}
	}
	if f.task == spec.TaskDiffusion { // for reports: the text of an image is its size
		return func(o object) ([]source.Document, error) {
			p, err := pictureOf(o)
			return []source.Document{{Text: p.Size.String()}}, err
		}
	}
	if f.task == spec.TaskClassify { // for reports: the text of an image is the name of its class
		return func(o object) ([]source.Document, error) {
			x, err := inObject(o)
			return []source.Document{{Text: x.label}}, err
		}
	}
	if f.task == spec.TaskGraph { // for reports, likewise
		return func(o object) ([]source.Document, error) {
			text, err := nodes.Text(o)
			return []source.Document{{Text: text}}, err
		}
	}
	talks := f.Field == spec.FieldChats && f.Format == source.JSONL
	answered := f.task == spec.TaskSFT || f.task == spec.TaskDPO || f.task == spec.TaskGRPO
	if !answered && !talks {
		return nil
	}
	if !answered {
		of := conversation.Transcripts
		if f.answers {
			of = conversation.Answers
		}
		write, wrong := of(f.base)
		return func(o object) ([]source.Document, error) { return write.Talk(o, f.Field, wrong) }
	}
	write, wrong := conversation.Answers(f.base)
	return func(o object) (docs []source.Document, err error) {
		switch {
		case wrong != nil:
			return nil, wrong
		case f.task == spec.TaskDPO:
			return write.Pair(o)
		}
		doc, err := write.Answered(o, f.Field)
		return []source.Document{doc}, err
	}
}
