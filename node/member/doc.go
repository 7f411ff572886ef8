// Package member is one role in one run: it follows the blocks, gives the role its events, performs the actions that it
// asks for, and keeps the blobs that it owes. It decides nothing: the step functions of package role do.
package member
