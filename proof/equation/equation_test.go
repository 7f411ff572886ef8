package equation

import (
	"bytes"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// A proof of a stranger that no key has made does not hold, whatever its bytes and those of the key.
func FuzzVerify(f *testing.F) {
	f.Add(make([]byte, KeyBytes(1, 2)), make([]byte, 32), make([]byte, 160))
	f.Add(bytes.Repeat([]byte{0x80}, KeyBytes(1, 2)), bytes.Repeat([]byte{0x80}, 32), bytes.Repeat([]byte{0xc0}, 160))
	f.Fuzz(func(t *testing.T, key, commitment, points []byte) {
		if _, err := (Proof{[][]byte{commitment}, points}).parts(); err == nil && len(points) != 160 {
			t.Errorf("%d bytes are the points of a proof", len(points))
		}
		k, err := ReadKey(key, 1, 2)
		if err != nil {
			return
		}
		if err := k.Verify(make([]fr.Element, 1), Proof{[][]byte{commitment, commitment}, points}); err == nil {
			t.Error("the proof holds")
		}
	})
}
