package runpb

import (
	"reflect"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// full gives every field of a value, at any depth, a value other than zero.
func full(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[canon.Digest]():
		v.Set(reflect.ValueOf(canon.Sum("full")))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			full(v.Field(i))
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		full(v.Index(0))
		full(v.Index(1))
	case v.Kind() == reflect.String:
		v.SetString("full")
	case v.CanUint():
		v.SetUint(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(-7)
	default:
		panic(v.Type())
	}
}

// TestNoFieldIsLost fails if the messages do not carry a field of the rules.
func TestNoFieldIsLost(t *testing.T) {
	var terms terms.Terms
	full(reflect.ValueOf(&terms).Elem())
	if back, err := FromTerms(terms).Rule(); err != nil || !reflect.DeepEqual(back, terms) {
		t.Errorf("terms %+v become %+v (%v)", terms, back, err)
	}
	var commitment work.Commitment
	full(reflect.ValueOf(&commitment).Elem())
	commitment.HandedState.Led = false // it marks data of a round in the state; no unit hands data on
	if back, err := FromCommitment(commitment).Rule(); err != nil || !reflect.DeepEqual(back, commitment) {
		t.Errorf("commitment %+v becomes %+v (%v)", commitment, back, err)
	}
}

func TestDigestHas32Bytes(t *testing.T) {
	for _, n := range []int{0, 31, 33} {
		if _, err := Digest(make([]byte, n)); err == nil {
			t.Errorf("a digest of %d bytes is taken", n)
		}
	}
}
