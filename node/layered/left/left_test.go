package left

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/stages/paths"
)

// A job of four stages of one layer each leaves out the second and the third in turn.
func TestOf(t *testing.T) {
	got, err := Of(8, 0.25, []int{2, 3, 4})
	if err != nil || !reflect.DeepEqual(got, Layers{{1}, {2}}) {
		t.Error(got, err)
	}
	if _, err := Of(8, 0.3, []int{2, 3, 4}); !errors.Is(err, paths.ErrShare) {
		t.Error(err)
	}
}

// Of six layers in three or six stages, those are left out together that one microbatch left out.
func TestStages(t *testing.T) {
	l := Layers{{1, 2}, {3, 4, 5}}
	for _, c := range []struct {
		of     int
		stages []int
		want   bool
	}{{6, []int{2}, true}, {6, []int{4, 5}, true}, {6, []int{3, 4}, false}, {6, []int{1}, false},
		{6, []int{2, 3, 4, 5}, false}, {3, []int{2}, false}, {6, []int{6}, false}} {
		of := section.Layout{Config: architecture.Config{Layers: 6}, Stages: c.of}
		if l.Stages(of, c.stages...) != c.want || Layers(nil).Stages(of, c.stages...) {
			t.Error(c)
		}
		if each := l.Each(of); len(each) != map[int]int{3: 0, 6: 4}[c.of] {
			t.Error(c.of, each)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if l, err := Read(dir, 4); l != nil || err != nil {
		t.Error(l, err)
	}
	want := Layers{{1}, {2}}
	if err := os.WriteFile(filepath.Join(dir, File), want.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Read(dir, 4); err != nil || !reflect.DeepEqual(l, want) {
		t.Error(l, err)
	}
	for _, text := range []string{"", "{}", "[[]]", "[[4]]", "[[-1]]", "[[2,1]]", "[[1,1]]", "[[0,1,2,3]]"} {
		if _, err := Parse([]byte(text), 4); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[[1],[2,3]]"))
	f.Add([]byte("[[]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text, 8)
		if err != nil {
			return
		}
		if again, err := Parse(l.JSON(), 8); err != nil || len(again) != len(l) {
			t.Error(again, err)
		}
	})
}
