package s3

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The requests and signatures are the examples of "Signature Calculations for the Authorization Header: Transferring
// Payload in a Single Chunk" in the API reference of Amazon S3.
func TestSignaturesOfTheReference(t *testing.T) {
	keys := Keys{Access: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		method, path, query, body, signature string
		header                               map[string]string
	}{
		{"GET", "test.txt", "", noBody, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
			map[string]string{"Range": "bytes=0-9"}},
		{"PUT", "test$file.text", "", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
			map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}},
		{"GET", "", query(map[string]string{"lifecycle": ""}), noBody,
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", nil},
		{"GET", "", query(map[string]string{"prefix": "J", "max-keys": "2"}), noBody,
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", nil},
	} {
		r, err := http.NewRequest(x.method, "https://examplebucket.s3.amazonaws.com/"+encode(x.path, true)+"?"+x.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range x.header {
			r.Header.Set(name, value)
		}
		keys.sign(r, "us-east-1", x.body, at)
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+x.signature) {
			t.Errorf("%s %s?%s: %s, want %s", x.method, x.path, x.query, got, x.signature)
		}
	}
}
