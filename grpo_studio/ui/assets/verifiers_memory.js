/** What a person typed and began on this page, kept for the life of the browser's tab. */
export class Memory {
  constructor(name) {
    this.name = name;
    this.values = {};
    try {
      this.values = JSON.parse(sessionStorage.getItem(name)) ?? {};
    } catch (error) {
      console.warn("nothing remembered", error);
    }
    window.addEventListener("pagehide", () => this.keep());
  }

  get(key, otherwise = null) {
    return this.values[key] ?? otherwise;
  }

  set(key, value) {
    this.values[key] = value;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), 200);
  }

  keep() {
    try {
      sessionStorage.setItem(this.name, JSON.stringify(this.values));
    } catch (error) {
      console.warn("not remembered", error); // a private window, or too much text: this page goes on without
    }
  }
}
