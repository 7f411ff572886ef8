package pretrained

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var two = []Listed{{"code", "code", 0.25}, {"prose", "b/prose", 0.75}}

func TestMixtureFile(t *testing.T) {
	dir := t.TempDir()
	if list, err := ReadMixture(dir); list != nil || err != nil {
		t.Errorf("an empty folder is a mixture: %v, %v", list, err)
	}
	if err := WriteMixture(dir, two); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadMixture(dir); err != nil || !reflect.DeepEqual(list, two) {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "expert code") {
		t.Errorf("a mixture without models: %v", err)
	}
}

func TestMixtureFileRefuses(t *testing.T) {
	for say, text := range map[string]string{
		"EOF":     "",
		"format":  `{"format": "starling-mixture-9", "experts": []}`,
		"unknown": `{"format": "starling-mixture-1", "experts": [], "more": 1}`,
		"2 to 16": `{"format": "starling-mixture-1", "experts": [{"name": "a", "path": "a", "prior": 1}]}`,
		"name": `{"format": "starling-mixture-1", "experts": [{"name": "a", "path": "a", "prior": 1},
			{"name": "a", "path": "b", "prior": 1}]}`,
		"lies in": `{"format": "starling-mixture-1", "experts": [{"name": "a", "path": "../a", "prior": 1},
			{"name": "b", "path": "b", "prior": 1}]}`,
		"prior": `{"format": "starling-mixture-1", "experts": [{"name": "a", "path": "a", "prior": -1},
			{"name": "b", "path": "b", "prior": 1}]}`,
		"bytes": strings.Repeat(" ", maxMixtureFile) + "{}",
	} {
		if _, err := ParseMixture([]byte(text)); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v does not say %q", err, say)
		}
	}
}

// FuzzParseMixture finds no file that is read otherwise than it is written.
func FuzzParseMixture(f *testing.F) {
	dir := f.TempDir()
	if err := WriteMixture(dir, two); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, MixtureFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format": "starling-mixture-1", "experts": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseMixture(text)
		if err != nil {
			if !errors.Is(err, ErrModel) {
				t.Error(err)
			}
			return
		}
		dir := t.TempDir()
		if err := WriteMixture(dir, list); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadMixture(dir); err != nil || !reflect.DeepEqual(list, again) {
			t.Errorf("%v is read as %v, %v", list, again, err)
		}
	})
}
