package serve

import (
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/web/openai"
)

// pair is a library of two models.
type pair map[string]string

func (p pair) Models() []openai.Info { return []openai.Info{{Name: "one"}, {Name: "two"}} }

func (p pair) Folder(name string) (string, error) {
	if p[name] == "" {
		return "", fmt.Errorf("%w as %q", openai.ErrModel, name)
	}
	return p[name], nil
}

// The model that is asked is in memory, and no other; one that writes is not sent away.
func TestSeveral(t *testing.T) {
	dir, _ := folders(t)
	s := NewSeveral(pair{"one": dir, "two": dir}, Options{})
	defer s.Close()
	r := openai.Request{Model: "one", Prompt: "once", Max: 3, TopP: 1, Temperature: 1, Seed: 1, Likely: -1}
	states := func() (loaded string) {
		for _, m := range s.Models() {
			if m.State != "" {
				loaded += m.Name
			}
		}
		return loaded
	}
	if got := states(); got != "" {
		t.Errorf("%s is in memory before it is asked", got)
	}
	var busy error
	result, err := s.Generate(t.Context(), r, func(openai.Piece) error {
		_, _, busy = s.Prompt("two", nil)
		return nil
	})
	if err != nil || result.Tokens == 0 || !errors.Is(busy, openai.ErrBusy) || states() != "one" {
		t.Errorf("%+v %v, another meanwhile: %v, %s in memory", result, err, busy, states())
	}
	if _, _, err := s.Prompt("two", []openai.Message{{Role: "user", Content: "Hi"}}); err != nil || states() != "two" {
		t.Errorf("%v, %s in memory", err, states())
	}
	if _, _, err := s.Prompt("three", nil); !errors.Is(err, openai.ErrModel) {
		t.Error(err)
	}
	s.library = pair{"one": t.TempDir()}
	if _, _, err := s.Prompt("one", nil); !errors.Is(err, ErrFolder) || states() != "" {
		t.Errorf("a folder that is no model: %v", err)
	}
}
