// Films of tools/moving_pictures.py: an SVG whose groups of class "frame" are shown one after the other.
// Buttons, the arrow keys, Home and End; nothing moves by itself, and "Play" is missing where motion is to be reduced.
function stepper(film) {
    const drawing = film.querySelector("svg")
    const frames = [...drawing.querySelectorAll(".frame")]
    const controls = document.createElement("div")
    const place = document.createElement("span")
    let shown = 0
    let timer = null

    function show(number) {
        shown = Math.min(Math.max(number, 0), frames.length - 1)
        frames.forEach((frame, k) => frame.setAttribute("display", k === shown ? "inline" : "none"))
        const caption = [...frames[shown].querySelectorAll(".caption")].map(line => line.textContent).join(" ")
        drawing.setAttribute("aria-label", `${drawing.querySelector("title").textContent}. ${caption}`)
        place.textContent = `${shown + 1} of ${frames.length}. `
        spoken.textContent = caption
    }

    function stop() {
        clearInterval(timer)
        timer = null
        if (play) play.textContent = "Play"
    }

    function button(words, act) {
        const made = document.createElement("button")
        made.type = "button"
        made.textContent = words
        made.addEventListener("click", act)
        controls.append(made)
        return made
    }

    function go(number) {
        stop()
        show(number)
    }

    const spoken = document.createElement("span")
    spoken.className = "spoken"
    place.setAttribute("aria-hidden", "true")
    spoken.setAttribute("aria-live", "polite")
    drawing.setAttribute("role", "img")
    button("Back", () => go(shown - 1))
    button("Next", () => go(shown + 1))
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches
    const play = still ? null : button("Play", () => {
        if (timer) return stop()
        if (shown === frames.length - 1) show(0)
        play.textContent = "Stop"
        timer = setInterval(() => {
            show(shown + 1)
            if (shown === frames.length - 1) stop()
        }, 1200)
    })
    controls.append(place, spoken)
    film.append(controls)
    film.tabIndex = 0
    film.addEventListener("keydown", event => {
        const keys = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: frames.length - 1 }
        if (!(event.key in keys)) return
        event.preventDefault()
        go(keys[event.key])
    })
    show(0)
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".film").forEach(stepper))
