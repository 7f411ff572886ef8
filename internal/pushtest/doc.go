// Package pushtest has the servers that tests of copies talk to: a store with the protocol of Amazon S3 and a hub,
// both in memory and strict. They are written from the documents of the protocols and share no code with the clients.
package pushtest
