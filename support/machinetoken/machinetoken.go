// SPDX-License-Identifier: Apache-2.0

// Package machinetoken makes tokens that are good for one machine out of the token that a pool's machines have in common.
//
// A provider that writes the user-data of single machines puts such a token in the place of the pool's. The ignition-server, which
// knows the pool's, can tell by it which machine is asking; from it neither the pool's token nor that of another machine can be found out.
package machinetoken

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	// prefix begins the tokens of machines; those of pools are UUIDs.
	prefix = "machine"
	// purpose keeps the digest apart from whatever else may once be made of a pool's token.
	purpose = "hypershift.openshift.io/machine-token\n"
)

// Derive makes the token of a Machine, named as Cluster API names it.
func Derive(pool []byte, machine string) string {
	mac := hmac.New(sha256.New, pool)
	mac.Write([]byte(purpose + machine))
	return strings.Join([]string{prefix, machine, hex.EncodeToString(mac.Sum(nil))}, ":")
}

// Machine is the Machine that a token says it is of; false for a token of a pool. Verify tells whether that is true.
func Machine(token string) (string, bool) {
	parts := strings.Split(token, ":")
	if len(parts) != 3 || parts[0] != prefix || parts[1] == "" {
		return "", false
	}
	return parts[1], true
}

// Verify tells whether the token of a machine was made of a pool's token.
func Verify(token string, pool []byte) bool {
	machine, ok := Machine(token)
	return ok && len(pool) > 0 && hmac.Equal([]byte(token), []byte(Derive(pool, machine)))
}

// Personalize puts a Machine's token into user-data in the place of the pool's, which stands there as the base64 of a bearer token.
func Personalize(userData, pool []byte, machine string) []byte {
	if len(pool) == 0 {
		return userData
	}
	return bytes.ReplaceAll(userData, bearer(pool), bearer([]byte(Derive(pool, machine))))
}

func bearer(token []byte) []byte {
	return []byte("Bearer " + base64.StdEncoding.EncodeToString(token))
}
