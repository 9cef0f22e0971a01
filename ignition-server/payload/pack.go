// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
)

// maxConfigSize limits the size of a config after decompression. Secrets hold at most 1 MiB.
const maxConfigSize = 32 << 20

// Pack compresses and encodes text in the format of token Secrets.
func Pack(text []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(buf.Bytes())), nil
}

// Unpack reverses Pack. It also reads gzip without the encoding.
func Unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	if decoded, err := base64.StdEncoding.DecodeString(string(packed)); err == nil {
		packed = decoded
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("it is not gzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxConfigSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfigSize {
		return nil, fmt.Errorf("it is larger than %d bytes", maxConfigSize)
	}
	return text, nil
}
