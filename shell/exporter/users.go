package exporter

import (
	"net/http"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"fabsh/fabric/format"
)

// users returns the users of a web configuration, with the hashes of their passwords.
func users(config string) (map[string]string, error) {
	f, err := format.OpenRegular(config)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := format.Bounded(f, config, maxConfig)
	if err != nil {
		return nil, err
	}
	var c struct {
		Users map[string]string `yaml:"basic_auth_users"`
	}
	err = yaml.NewDecoder(in).Decode(&c)
	return c.Users, err
}

// Users returns how many users a web configuration has.
func Users(config string) (int, error) {
	list, err := users(config)
	return len(list), err
}

// User returns the user of a request, "" without one that the web configuration has. The toolkit lets
// in only users with their password, but reads the file again for each request: for one that writes,
// the password is compared here too.
func User(config string, r *http.Request) string {
	name, password, ok := r.BasicAuth()
	list, err := users(config)
	hash, known := list[name]
	if !ok || err != nil || !known {
		return ""
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) != nil {
		return ""
	}
	return name
}
