package shamir

import (
	"testing"

	"github.com/starling-network/starling/exchange/prg"
)

func TestThresholdGivesTheSecret(t *testing.T) {
	if !prime.ProbablyPrime(64) {
		t.Fatal("the modulus is no prime")
	}
	secret := [Size]byte(prg.Key{1, 2, 3, 31: 9})
	shares, err := Split(secret, 4, 7, prg.Key{5})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range [][]int{{0, 1, 2, 3}, {6, 2, 5, 0}, {0, 1, 2, 3, 4, 5, 6}} {
		w, err := Weights(of)
		if err != nil {
			t.Fatal(err)
		}
		var list [][Size]byte
		for _, i := range of {
			list = append(list, shares[i])
		}
		if Combine(list, w) != secret {
			t.Errorf("shares %v give another secret", of)
		}
	}
	w, _ := Weights([]int{0, 1, 2})
	if Combine(shares[:3], w) == secret {
		t.Error("three shares of four give the secret")
	}
}

func TestRefused(t *testing.T) {
	var top [Size]byte
	for i := range top {
		top[i] = 0xff
	}
	for _, c := range []struct {
		secret [Size]byte
		t, n   int
	}{{top, 1, 1}, {[Size]byte{}, 0, 1}, {[Size]byte{}, 3, 2}, {[Size]byte{}, 3, MaxShares + 1}} {
		if _, err := Split(c.secret, c.t, c.n, prg.Key{}); err == nil {
			t.Errorf("%d of %d are dealt", c.t, c.n)
		}
	}
	if _, err := Weights([]int{1, 1}); err == nil {
		t.Error("one share twice")
	}
}
