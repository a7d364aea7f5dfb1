package exporter

import (
	"net/http"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"fabsh/fabric/format"
)

// webConfig is what is read here of the toolkit's file of TLS and passwords.
type webConfig struct {
	TLS   map[string]any    `yaml:"tls_server_config"`
	Users map[string]string `yaml:"basic_auth_users"` // hashes of passwords
}

func readConfig(path string) (c webConfig, err error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	in, err := format.Bounded(f, path, maxConfig)
	if err != nil {
		return c, err
	}
	return c, yaml.NewDecoder(in).Decode(&c)
}

// IsProtected reports whether a file of TLS and passwords requires both of each client.
func IsProtected(path string) bool {
	if path == "" || CheckConfig(path) != nil {
		return false
	}
	c, err := readConfig(path)
	return err == nil && len(c.TLS) > 0 && len(c.Users) > 0
}

// Users returns how many users a web configuration has.
func Users(config string) (int, error) {
	c, err := readConfig(config)
	return len(c.Users), err
}

// User returns the user of a request, "" without one that the web configuration has. The toolkit lets
// in only users with their password, but reads the file again for each request: for one that writes,
// the password is compared here too.
func User(config string, r *http.Request) string {
	name, password, ok := r.BasicAuth()
	c, err := readConfig(config)
	hash, known := c.Users[name]
	if !ok || err != nil || !known {
		return ""
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) != nil {
		return ""
	}
	return name
}
